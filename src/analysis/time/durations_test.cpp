#include "analysis/time/durations.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace assay::analysis {
namespace {

TEST(Durations, EmptyIsZero) {
  Durations none;
  EXPECT_EQ(none.quantile_ns(0.99), 0);
  EXPECT_EQ(none.mean_ns(), 0);
}

TEST(Durations, FewAreExact) {
  Durations d;
  for (int64_t i = 100; i >= 1; --i) d.add(i * 1000);
  EXPECT_EQ(d.quantile_ns(0.99), 99'000);
  EXPECT_EQ(d.quantile_ns(1), 100'000);
  EXPECT_EQ(d.max_ns(), 100'000);
  EXPECT_EQ(d.mean_ns(), 50'500);
  EXPECT_EQ(d.count(), 100u);
}

TEST(Durations, NegativeCountsAsZero) {
  Durations d;
  d.add(-5);
  EXPECT_EQ(d.max_ns(), 0);
  EXPECT_EQ(d.sum_ns(), 0);
}

// Sizes around the switch from exact to histogram and values over the whole range.
TEST(Durations, QuantilesAreWithinHalfAPercent) {
  std::mt19937_64 random(7);
  for (size_t size : {Durations::kExactCount, Durations::kExactCount + 1, size_t{20'000}}) {
    Durations d;
    std::vector<int64_t> all;
    for (size_t i = 0; i < size; ++i) {
      all.push_back(static_cast<int64_t>(std::exp2(static_cast<double>(random() % 40'000) / 1000)));
      d.add(all.back());
    }
    std::sort(all.begin(), all.end());
    for (double q : {0.5, 0.9, 0.99, 0.999}) {
      auto exact = static_cast<double>(
          all[static_cast<size_t>(std::ceil(q * static_cast<double>(size))) - 1]);
      EXPECT_NEAR(static_cast<double>(d.quantile_ns(q)), exact, exact * 0.005)
          << q << " of " << size;
    }
    EXPECT_EQ(d.max_ns(), all.back());
  }
}

TEST(Durations, TheLargestValueFits) {
  Durations d;
  for (size_t i = 0; i < 2 * Durations::kExactCount; ++i) d.add(0);
  d.add(INT64_MAX);
  EXPECT_EQ(d.max_ns(), INT64_MAX);
  EXPECT_EQ(d.quantile_ns(0.5), 0);
  EXPECT_GE(d.quantile_ns(1), INT64_MAX / 256 * 255);
}

}  // namespace
}  // namespace assay::analysis
