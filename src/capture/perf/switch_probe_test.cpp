#include "capture/perf/switch_probe.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace assay::capture {
namespace {

TEST(SwitchProbe, EveryReturnMustBeSeen) {
  std::vector<ProbeThread> threads{{0, 100, 3}, {1, 101, 3}};
  EXPECT_TRUE(all_returns_seen(threads, {{100, 3}, {101, 5}}));
  EXPECT_FALSE(all_returns_seen(threads, {{100, 3}, {101, 2}}));
  EXPECT_FALSE(all_returns_seen(threads, {{100, 3}}));
}

TEST(SwitchProbe, ACpuThatMayNotBeUsedTellsNothing) {
  EXPECT_TRUE(all_returns_seen({{7, 0, 0}}, {}));
}

TEST(SwitchProbe, SleepsOnTheCpusItIsGiven) {
  auto threads = sleep_on_each_cpu({sched_getcpu(), 100'000});
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_GT(threads[0].tid, 0);
  EXPECT_GT(threads[0].returns, 0);
  EXPECT_EQ(threads[1].returns, 0) << "there is no such CPU";
}

}  // namespace
}  // namespace assay::capture
