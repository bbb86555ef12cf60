#include "analysis/accounted/thread_cover.h"

#include <gtest/gtest.h>

namespace assay::analysis {
namespace {

using model::TimeSpan;
using enum model::WaitState;

model::Wait wait_of(TimeNs start, int64_t duration_ns, int64_t runqueue_ns = 0) {
  model::Wait wait;
  wait.start = start;
  wait.duration_ns = duration_ns;
  wait.runqueue_ns = runqueue_ns;
  wait.set(model::WaitFlag::runqueue_known);
  return wait;
}

ThreadCover cover_of(TimeNs begin_ns, TimeNs end_ns) {
  model::Thread thread;
  thread.begin_ns = begin_ns;
  thread.end_ns = end_ns;
  return {thread, {100, 1000}};
}

TEST(ThreadCover, LifeIsCutToTheRange) {
  EXPECT_EQ(cover_of(0, 5000).life(), (TimeSpan{100, 1000}));
  EXPECT_EQ(cover_of(300, 700).life(), (TimeSpan{300, 700}));
  EXPECT_TRUE(cover_of(2000, 3000).life().empty());
  EXPECT_EQ(cover_of(2000, 3000).rest().ns(), 0);
}

TEST(ThreadCover, GapsAndPiecesLeaveNothingOut) {
  ThreadCover cover = cover_of(0, 5000);
  int64_t ran = 0, off = 0;
  for (const model::Wait& wait :
       {wait_of(50, 100, 10), wait_of(200, 100, 30), wait_of(300, 50), wait_of(900, 500, 450)}) {
    CoveredWait covered = cover.add(wait);
    EXPECT_EQ(covered.overlap_ns, 0);
    ran += covered.ran_before.ns();
    off += covered.pieces.ns(blocked) + covered.pieces.ns(runqueue);
  }
  EXPECT_EQ(off, 50 + 100 + 50 + 100);
  EXPECT_EQ(ran + off + cover.rest().ns(), 900);
}

TEST(ThreadCover, WhatAnEarlierWaitCoversIsCutOffAndTold) {
  ThreadCover cover = cover_of(0, 5000);
  (void)cover.add(wait_of(200, 200));
  CoveredWait later = cover.add(wait_of(300, 200, 50));
  EXPECT_EQ(later.overlap_ns, 100);
  EXPECT_TRUE(later.ran_before.empty());
  EXPECT_EQ(later.pieces.piece(blocked), (TimeSpan{400, 450}));
  EXPECT_EQ(later.pieces.piece(runqueue), (TimeSpan{450, 500}));
  EXPECT_TRUE(later.is_cut());
  CoveredWait inside = cover.add(wait_of(250, 100));
  EXPECT_EQ(inside.overlap_ns, 100);
  EXPECT_TRUE(inside.pieces.empty());
  EXPECT_EQ(cover.rest(), (TimeSpan{500, 1000}));
}

TEST(ThreadCover, AWholeWaitIsNotCut) {
  ThreadCover cover = cover_of(0, 5000);
  EXPECT_FALSE(cover.add(wait_of(200, 100)).is_cut());
  EXPECT_TRUE(cover.add(wait_of(900, 200)).is_cut());
}

TEST(ThreadCover, WaitsOutsideTheLifeLeaveNothing) {
  ThreadCover cover = cover_of(300, 700);
  EXPECT_TRUE(cover.add(wait_of(100, 200)).pieces.empty());
  EXPECT_TRUE(cover.add(wait_of(INT64_MIN, INT64_MAX)).pieces.empty());
  EXPECT_TRUE(cover.add(wait_of(700, INT64_MAX)).pieces.empty());
  EXPECT_EQ(cover.rest(), (TimeSpan{300, 700}));
}

}  // namespace
}  // namespace assay::analysis
