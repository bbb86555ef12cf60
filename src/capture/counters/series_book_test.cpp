#include "capture/counters/series_book.h"

#include <gtest/gtest.h>

#include "capture/counters/counter_group.h"
#include "capture/counters/recording_sink.h"

namespace assay::capture {
namespace {

using model::SeriesKind;
using model::SeriesScope;

constexpr SeriesSpec kSpec{SeriesScope::thread, SeriesKind::cumulative, "run", "ns"};

TEST(SeriesBook, AQuietStretchIsTwoPointsWithItsEndsExact) {
  RecordingSink sink;
  std::atomic<uint32_t> next{5};
  SeriesBook book(sink, next);
  Track track;
  for (TimeNs time : {10, 20, 30, 40}) book.put(track, kSpec, 3, "", time, 100);
  book.put(track, kSpec, 3, "", 50, 160);
  book.put(track, kSpec, 3, "", 60, 170);
  ASSERT_EQ(sink.series().size(), 1u);
  EXPECT_EQ(sink.series()[0].id.value, 5u);
  EXPECT_EQ(sink.series()[0].owner, 3u);
  EXPECT_EQ(next.load(), 6u);
  auto points = sink.points(SeriesScope::thread, 3, "run");
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[0].time, 10);
  EXPECT_EQ(points[1].time, 40) << "still 100 here: nothing is smeared back to 10";
  EXPECT_EQ(points[1].value, 100);
  EXPECT_EQ(points[2].time, 50);
  EXPECT_EQ(points[3].value, 170);
}

TEST(SeriesBook, TheEndsOfAWindowAreAlwaysWritten) {
  RecordingSink sink;
  std::atomic<uint32_t> next{0};
  SeriesBook book(sink, next);
  Track track;
  book.put(track, kSpec, 0, "", 10, 1);
  book.put(track, kSpec, 0, "", 20, 1);
  book.write_everything(true);
  book.put(track, kSpec, 0, "", 30, 1);
  auto points = sink.points(SeriesScope::thread, 0, "run");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].time, 30);
}

TEST(SeriesBook, WhatWasHeldBackIsWrittenWhenTheOwnerGoes) {
  RecordingSink sink;
  std::atomic<uint32_t> next{0};
  SeriesBook book(sink, next);
  Track track;
  book.put(track, kSpec, 0, "", 10, 1);
  book.settle(track);
  book.put(track, kSpec, 0, "", 20, 1);
  book.settle(track);
  book.settle(track);
  auto points = sink.points(SeriesScope::thread, 0, "run");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].time, 20);
}

TEST(Cadence, KeepsItsIntervalWhileItIsCheap) {
  Cadence cadence(200 * kNsPerMs, 0.01);
  EXPECT_TRUE(cadence.due(0));
  cadence.ran(1'000 * kNsPerMs, kNsPerMs);
  EXPECT_FALSE(cadence.due(1'199 * kNsPerMs));
  EXPECT_TRUE(cadence.due(1'200 * kNsPerMs));
  cadence.ran(1'205 * kNsPerMs, kNsPerMs);
  EXPECT_EQ(cadence.next_ns(), 1'400 * kNsPerMs) << "five late once is not late for ever";
}

TEST(Cadence, BacksOffSoThatTheShareHolds) {
  Cadence cadence(200 * kNsPerMs, 0.01);
  TimeNs now = kNsPerSecond;
  int64_t spent = 0;
  for (int i = 0; i < 20; ++i) {
    cadence.ran(now, 20 * kNsPerMs);
    spent += 20 * kNsPerMs;
    now = cadence.next_ns();
  }
  EXPECT_EQ(cadence.pause_ns(), 2 * kNsPerSecond);
  EXPECT_LE(static_cast<double>(spent) / static_cast<double>(now - kNsPerSecond), 0.0101);
  for (int i = 0; i < 20; ++i) cadence.ran(now, 100 * kNsPerSecond);
  EXPECT_EQ(cadence.pause_ns(), 30 * kNsPerSecond) << "never silent for ever";
  for (int i = 0; i < 40; ++i) cadence.ran(now, 0);
  EXPECT_EQ(cadence.pause_ns(), 200 * kNsPerMs)
      << "and back to its interval when it is cheap again";
}

}  // namespace
}  // namespace assay::capture
