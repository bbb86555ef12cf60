#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "inject/preload/exponential.h"
#include "inject/preload/sample_budget.h"

namespace assay::inject {
namespace {

TEST(Exponential, LogarithmsAndWeightsAgreeWithTheLibrary) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    uint64_t bits = (random() >> 11) >> random() % 53;
    double expected = -std::log((static_cast<double>(bits) + 1) / 9007199254740992.0);
    EXPECT_NEAR(minus_log(bits), expected, 1e-9 * (1 + expected));
  }
  for (double x = 1e-9; x < 60; x *= 1.07) EXPECT_NEAR(one_minus_exp(x) / -std::expm1(-x), 1, 1e-9);
  EXPECT_EQ(one_minus_exp(0), 0);
  EXPECT_EQ(sample_weight(0, 512), 0);
  EXPECT_NEAR(sample_weight(1 << 30, 512), 1, 1e-12);
  EXPECT_NEAR(sample_weight(16, 512 << 10), 32768.5, 0.01);
}

TEST(Exponential, IntervalsHaveTheMeanAndVarianceOfTheirRate) {
  uint64_t random = 7;
  constexpr int kDraws = 400'000;
  constexpr double kRate = 512 << 10;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    double interval = static_cast<double>(draw_interval(random, 512 << 10));
    sum += interval, squares += interval * interval;
  }
  double mean = sum / kDraws, deviation = std::sqrt(squares / kDraws - mean * mean);
  EXPECT_NEAR(mean / kRate, 1, 5 / std::sqrt(kDraws));  // 5 standard errors; the seed is fixed
  EXPECT_NEAR(deviation / kRate, 1, 0.02);
  EXPECT_EQ(draw_interval(random, 1), 0u);
}

// Simulated time: a program that would give `natural_per_s` samples at the wanted rate.
double samples_per_s(SampleBudget& budget, double natural_per_s, double seconds, uint64_t& now_ns) {
  int samples = 0;
  uint64_t end = now_ns + static_cast<uint64_t>(seconds * 1e9);
  while (now_ns < end) {
    now_ns +=
        static_cast<uint64_t>(1e9 / natural_per_s * static_cast<double>(1u << budget.shift()));
    budget.spend(now_ns, 200);
    ++samples;
  }
  return samples / seconds;
}

TEST(SampleBudget, KeepsToItsLimitAndComesBack) {
  SampleBudget budget;
  budget.set_cores(2);
  uint64_t now_ns = 1'000'000'000;
  samples_per_s(budget, 50'000, 2, now_ns);
  double busy = samples_per_s(budget, 50'000, 5, now_ns);
  EXPECT_LE(busy, 420);
  EXPECT_GE(busy, 100);
  EXPECT_GT(budget.shift(), 5u);
  samples_per_s(budget, 100, 5, now_ns);
  EXPECT_EQ(budget.shift(), 0u);
  EXPECT_EQ(budget.raised(1000), 1000u);
}

}  // namespace
}  // namespace assay::inject
