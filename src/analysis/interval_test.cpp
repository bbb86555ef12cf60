#include "analysis/interval.h"

#include <gtest/gtest.h>

namespace assay::analysis {
namespace {

TEST(Interval, FewSamplesCarryNoPreciseClaim) {
  // 4 of 110: the figures of the Wilson score interval, computed by hand.
  Estimate four = wilson(4.0 / 110, 110);
  EXPECT_NEAR(four.low, 0.0142, 0.0002);
  EXPECT_NEAR(four.high, 0.0898, 0.0002);
  Estimate one = wilson(1.0 / 110, 110);
  EXPECT_LT(one.low, 0.002);
  EXPECT_GT(one.high, 0.049);
}

TEST(Interval, StaysInsideZeroAndOne) {
  EXPECT_EQ(wilson(0, 50).low, 0);
  EXPECT_GT(wilson(0, 50).high, 0.05);
  EXPECT_EQ(wilson(1, 50).high, 1);
  EXPECT_EQ(wilson(0.5, 0).low, 0);
  EXPECT_EQ(wilson(0.5, 0).high, 1);
}

TEST(Interval, NarrowsWithSamples) {
  Estimate few = wilson(0.3, 100), many = wilson(0.3, 10'000);
  EXPECT_LT(many.high - many.low, (few.high - few.low) / 5);
}

TEST(Interval, UnequalWeightsAreWorthFewerSamples) {
  EXPECT_DOUBLE_EQ(effective_samples(10, 10), 10);         // ten of weight 1
  EXPECT_LT(effective_samples(9 + 100, 9 + 10'000), 1.2);  // nine of 1, one of 100
  EXPECT_EQ(effective_samples(0, 0), 0);
}

}  // namespace
}  // namespace assay::analysis
