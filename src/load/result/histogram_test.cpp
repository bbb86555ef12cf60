#include "load/result/histogram.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace assay::load {
namespace {

TEST(Histogram, EveryBucketIsWithinOnePercentOfItsValues) {
  for (uint64_t value = 1; value < uint64_t{1} << 62; value += 1 + value / 300) {
    auto middle = static_cast<double>(Histogram::middle_of(Histogram::bucket_of(value)));
    ASSERT_LE(std::abs(middle - static_cast<double>(value)), 0.01 * static_cast<double>(value))
        << value;
  }
}

TEST(Histogram, BucketsAscendWithoutGaps) {
  uint32_t last = 0;
  for (uint64_t value = 0; value < 1 << 20; ++value) {
    uint32_t bucket = Histogram::bucket_of(value);
    ASSERT_TRUE(bucket == last || bucket == last + 1) << value;
    last = bucket;
  }
  EXPECT_LT(Histogram::bucket_of(INT64_MAX), Histogram::kBuckets);
}

TEST(Histogram, QuantilesOfALongTailAgreeWithSorting) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> latency(13, 1.5);  // around 0.4 ms, with a long tail
  std::vector<int64_t> values;
  Histogram histogram;
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(static_cast<int64_t>(latency(random)));
    histogram.record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (double share : {0.5, 0.9, 0.99, 0.999, 1.0}) {
    auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1;
    auto truth = static_cast<double>(values[rank]);
    EXPECT_NEAR(static_cast<double>(histogram.quantile_ns(share)), truth, 0.01 * truth) << share;
  }
  EXPECT_EQ(histogram.max_ns(), values.back());
  EXPECT_EQ(histogram.min_ns(), values.front());
}

TEST(Histogram, OddValues) {
  Histogram histogram;
  EXPECT_EQ(histogram.quantile_ns(0.5), 0);
  EXPECT_EQ(histogram.min_ns(), 0);
  histogram.record(-5);
  EXPECT_EQ(histogram.max_ns(), 0);
  histogram.record(INT64_MAX);
  EXPECT_EQ(histogram.max_ns(), INT64_MAX);
  EXPECT_EQ(histogram.count(), 2U);
}

TEST(Histogram, MergesAndTravelsInBuckets) {
  Histogram one, two, copy;
  for (int i = 1; i <= 1000; ++i) (i % 2 == 0 ? one : two).record(i * 1000);
  one.merge(two);
  one.for_each_bucket([&](uint32_t bucket, uint64_t count) { copy.add_bucket(bucket, count); });
  copy.set_max(one.max_ns());
  copy.add_bucket(Histogram::kBuckets, 7);  // out of range: not counted
  EXPECT_EQ(copy.count(), 1000U);
  EXPECT_EQ(copy.max_ns(), 1'000'000);
  EXPECT_NEAR(static_cast<double>(copy.quantile_ns(0.5)), 500'000, 5'000);
  EXPECT_EQ(copy.quantile_ns(0.9), one.quantile_ns(0.9));
}

}  // namespace
}  // namespace assay::load
