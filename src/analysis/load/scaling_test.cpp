#include "analysis/load/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::analysis {
namespace {

using testing::Contains;
using testing::HasSubstr;

// A second of a server with four threads: `busy` of them run, `locked` wait for a lock, the rest
// poll.
ScalingLevel level(uint32_t clients, double throughput, double busy, double locked) {
  ScalingLevel made;
  made.clients = clients;
  made.throughput = throughput;
  made.requests = static_cast<uint64_t>(throughput);
  made.p50_ns = static_cast<int64_t>(1e9 * clients / throughput);
  made.window_ns = kNsPerSecond;
  made.time.wall_ns = 4 * kNsPerSecond;
  made.time.user_ns = static_cast<int64_t>(busy * 1e9);
  made.time.of(BlockKind::lock) = static_cast<int64_t>(locked * 1e9);
  made.time.of(BlockKind::poll) =
      made.time.wall_ns - made.time.user_ns - made.time.of(BlockKind::lock);
  return made;
}

const ScalingRow* row(const Scaling& scaling, const std::string& id) {
  for (const ScalingRow& each : scaling.rows) {
    if (each.id == id) return &each;
  }
  return nullptr;
}

TEST(Scaling, IdleWaitingAndContentionAreToldApart) {
  Scaling scaling = summarise_scaling({level(1, 1000, 0.5, 0), level(2, 1800, 0.9, 0.1),
                                       level(4, 2000, 1, 1), level(8, 2010, 1, 2.5)});
  ASSERT_NE(row(scaling, "lock"), nullptr);
  EXPECT_EQ(row(scaling, "lock")->trend, Trend::grows);
  EXPECT_EQ(row(scaling, "poll")->trend, Trend::shrinks);
  EXPECT_EQ(row(scaling, "disk"), nullptr);
  EXPECT_DOUBLE_EQ(row(scaling, "lock")->threads.back(), 2.5);
  EXPECT_NEAR(row(scaling, "user")->per_request.front(), 500'000, 1);
  EXPECT_FALSE(scaling.more_clients_help);
  EXPECT_THAT(scaling.sentences, Contains(HasSubstr("will not help")));
  EXPECT_THAT(scaling.sentences, Contains(HasSubstr("contention or queueing: blocked, lock")));
  EXPECT_THAT(scaling.sentences, Contains(HasSubstr("waiting for work: blocked, poll")));
}

TEST(Scaling, MoreClientsHelpOrHarm) {
  Scaling rises =
      summarise_scaling({level(4, 3900, 3, 0), level(1, 1000, 1, 0), level(2, 1980, 2, 0)});
  EXPECT_EQ(rises.levels.front().clients, 1U);
  EXPECT_TRUE(rises.more_clients_help);
  EXPECT_EQ(rises.best, 2U);
  Scaling falls = summarise_scaling(
      {level(1, 1000, 1, 0), level(2, 1500, 2, 0), level(4, 1200, 2, 1), level(8, 900, 2, 2)});
  EXPECT_FALSE(falls.more_clients_help);
  EXPECT_EQ(falls.best, 1U);
  EXPECT_THAT(falls.sentences, Contains(HasSubstr("makes it worse")));
}

TEST(Scaling, LevelsThatTheGeneratorLimitedAreLeftOutOfTheCurve) {
  std::vector<ScalingLevel> levels{level(1, 1000, 1, 0), level(2, 2000, 2, 0), level(4, 4000, 3, 0),
                                   level(8, 4100, 3, 0)};
  levels[3].generator_saturated = true;
  Scaling scaling = summarise_scaling(levels);
  EXPECT_TRUE(scaling.fit_leaves_out);
  ASSERT_TRUE(scaling.fit);
  EXPECT_LT(scaling.fit->sigma, 0.01);
  EXPECT_THAT(scaling.sentences, Contains(HasSubstr("From 8 clients on the load generator")));
}

TEST(Scaling, FewLevelsAndFailures) {
  EXPECT_NE(summarise_scaling({}).no_fit, "");
  Scaling one = summarise_scaling({level(1, 100, 1, 0)});
  EXPECT_NE(one.no_fit, "");
  auto failing = level(2, 100, 1, 0);
  failing.requests = 200;
  failing.errors = 100;
  failing.covered = false;
  Scaling two = summarise_scaling({level(1, 100, 1, 0), failing});
  EXPECT_FALSE(two.fit);
  EXPECT_THAT(two.sentences, Contains(HasSubstr("50.0 % of the requests failed")));
  EXPECT_THAT(two.sentences, Contains(HasSubstr("did not cover")));
}

}  // namespace
}  // namespace assay::analysis
