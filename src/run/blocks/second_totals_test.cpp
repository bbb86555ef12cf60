#include "run/blocks/second_totals.h"

#include <gtest/gtest.h>

#include "run/blocks/thread_grouper.h"

namespace assay::run {
namespace {

model::Wait wait(uint32_t thread, double start_s, double duration_s, double runqueue_s = 0) {
  model::Wait w;
  w.thread = {thread};
  w.start = static_cast<TimeNs>(start_s * 1e9);
  w.duration_ns = static_cast<int64_t>(duration_s * 1e9);
  w.runqueue_ns = static_cast<int64_t>(runqueue_s * 1e9);
  w.set(model::WaitFlag::runqueue_known);
  return w;
}

TEST(SecondTotals, AWaitIsSplitOverItsFirstAndLastSecond) {
  std::vector<model::Wait> waits{wait(1, 10.25, 4.5, 0.25)};  // blocked to 14.5, runnable to 14.75
  auto totals = second_totals({}, waits);
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].second, 10);
  EXPECT_EQ(totals[0].waits, 1);
  EXPECT_EQ(totals[0].blocked_ns, 750'000'000);
  EXPECT_EQ(totals[1].second, 14);
  EXPECT_EQ(totals[1].waits, 0);
  EXPECT_EQ(totals[1].blocked_ns, 500'000'000);
  EXPECT_EQ(totals[1].runqueue_ns, 250'000'000);
}

TEST(SecondTotals, EachSecondAndThreadOnceInOrder) {
  std::vector<model::Wait> waits;
  for (uint32_t thread = 0; thread < 3; ++thread) {
    for (int i = 0; i < 30; ++i) waits.push_back(wait(thread, 1 + i * 0.0625, 0.03125));
  }
  std::vector<model::Sample> samples{{2'500'000'000, {1}, {}, 7, 0}};
  auto totals = second_totals(samples, waits);
  ASSERT_EQ(totals.size(), 6u);
  for (size_t i = 0; i < totals.size(); ++i) {
    EXPECT_EQ(totals[i].second, i < 3 ? 1 : 2);
    EXPECT_EQ(totals[i].thread, i % 3);
    EXPECT_EQ(totals[i].waits, i < 3 ? 16 : 14);
    EXPECT_EQ(totals[i].samples, i == 4 ? 1 : 0);
  }
}

TEST(SecondTotals, TimesBeforeZeroAndAtTheLimitsAreSeconds) {
  std::vector<model::Wait> waits{wait(0, -0.5, 0.25)};
  model::Wait whole = wait(1, 0, 0);
  whole.start = INT64_MIN + 1;
  whole.duration_ns = INT64_MAX;
  waits.push_back(whole);
  auto totals = second_totals({}, waits);
  ASSERT_EQ(totals.size(), 3u);
  EXPECT_EQ(totals[1].second, -1);
}

TEST(ThreadGrouper, OrdersByProcessThreadAndTime) {
  ThreadGrouper grouper;
  grouper.set_process({0}, {1});
  grouper.set_process({1}, {0});
  grouper.set_process({5}, {1});
  EXPECT_FALSE(grouper.knows({3}));
  EXPECT_FALSE(grouper.knows({6}));
  std::vector<model::Wait> waits{wait(5, 1, 0), wait(0, 3, 0), wait(1, 4, 0),
                                 wait(0, 2, 0), wait(1, 5, 0), wait(5, 0, 0)};
  for (int round = 0; round < 2; ++round) {  // nothing is left over from one call to the next
    std::vector<model::Wait> grouped;
    grouper.group(std::span<const model::Wait>(waits), grouped);
    std::vector<std::pair<uint32_t, TimeNs>> got;
    for (const auto& w : grouped) got.emplace_back(w.thread.value, w.start / kNsPerSecond);
    EXPECT_EQ(got, (std::vector<std::pair<uint32_t, TimeNs>>{
                       {1, 4}, {1, 5}, {0, 2}, {0, 3}, {5, 0}, {5, 1}}));
  }
}

}  // namespace
}  // namespace assay::run
