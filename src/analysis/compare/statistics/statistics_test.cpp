#include "analysis/compare/statistics/statistics.h"

#include <array>
#include <cmath>
#include <random>

#include <gmock/gmock.h>

namespace assay::analysis {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;

// Hours of extra sleep with two drugs (Student 1908; the data set `sleep` of R). R's own answers:
// t.test(extra ~ group): t = -1.8608, df = 17.776, p-value = 0.07939, interval -3.3654832
// 0.2054832.
constexpr std::array kSleepA{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
constexpr std::array kSleepB{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

std::vector<double> normal(std::mt19937_64& random, size_t count, double centre, double spread) {
  std::normal_distribution<double> draw(centre, spread);
  std::vector<double> values(count);
  for (double& value : values) value = draw(random);
  return values;
}

TEST(Statistics, WelchAgreesWithR) {
  Welch welch = welch_test(kSleepA, kSleepB);
  EXPECT_NEAR(welch.difference / welch.standard_error, 1.8608, 5e-5);
  EXPECT_NEAR(welch.degrees, 17.776, 5e-4);
  EXPECT_NEAR(welch.p, 0.07939, 5e-6);
  Interval interval = student_interval(welch);
  EXPECT_NEAR(interval.low, -0.2054832, 5e-7);
  EXPECT_NEAR(interval.high, 3.3654832, 5e-7);
}

// qt(0.975, c(1, 5, 30)) of R.
TEST(Statistics, StudentsQuantilesAgreeWithR) {
  EXPECT_NEAR(student_quantile(1, 0.975), 12.70620474, 1e-8);
  EXPECT_NEAR(student_quantile(5, 0.975), 2.570581836, 1e-8);
  EXPECT_NEAR(student_quantile(30, 0.975), 2.042272456, 1e-8);
}

TEST(Statistics, OneRunASideClaimsNothing) {
  Welch welch = welch_test(std::array{1.0}, std::array{2.0});
  EXPECT_EQ(welch.difference, 1.0);
  EXPECT_EQ(welch.p, 1);
  EXPECT_TRUE(std::isinf(student_interval(welch).high));
  EXPECT_FALSE(equivalent(welch, 100));
  EXPECT_TRUE(std::isinf(bootstrap_interval(std::array{1.0}, std::array{2.0}).low));
}

TEST(Statistics, EqualValuesAreDecidedWithoutSpread) {
  EXPECT_EQ(welch_test(std::array{1.0, 1.0}, std::array{1.0, 1.0}).p, 1);
  EXPECT_EQ(welch_test(std::array{1.0, 1.0}, std::array{2.0, 2.0}).p, 0);
}

// p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "BH") is 0.05 five times, by hand as well: 5 p / rank.
TEST(Statistics, BenjaminiAndHochberg) {
  EXPECT_THAT(benjamini_hochberg(std::array{0.01, 0.02, 0.03, 0.04, 0.05}),
              Each(DoubleNear(0.05, 1e-12)));
  EXPECT_THAT(
      benjamini_hochberg(std::array{0.5, 0.001, 0.04}),
      ElementsAre(DoubleNear(0.5, 1e-12), DoubleNear(0.003, 1e-12), DoubleNear(0.06, 1e-12)));
  EXPECT_TRUE(benjamini_hochberg({}).empty());
}

TEST(Statistics, EquivalenceNeedsEvidence) {
  std::mt19937_64 random(11);
  auto a = normal(random, 10, 0, 0.01);
  auto b = normal(random, 10, 0.001, 0.01);
  EXPECT_TRUE(equivalent(welch_test(a, b), 0.03));
  auto noisy = normal(random, 10, 0, 0.2);
  EXPECT_FALSE(equivalent(welch_test(a, noisy), 0.03)) << "not seen is not the same as not there";
  auto moved = normal(random, 10, 0.1, 0.01);
  EXPECT_FALSE(equivalent(welch_test(a, moved), 0.03));
}

TEST(Statistics, BootstrapIntervalsHoldTheTruth) {
  std::mt19937_64 random(13);
  int held = 0;
  constexpr int kRounds = 200;
  for (int i = 0; i < kRounds; ++i) {
    auto a = normal(random, 10, 0, 0.03);
    auto b = normal(random, 10, 0.1, 0.03);
    Interval interval = bootstrap_interval(a, b);
    held += interval.low <= 0.1 && 0.1 <= interval.high;
  }
  // Nominally 190; ten runs a side make the percentile bootstrap some percent too narrow.
  EXPECT_GE(held, 172);
}

TEST(Statistics, WelchFindsNothingInNothing) {
  std::mt19937_64 random(17);
  int found = 0;
  constexpr int kRounds = 2000;
  for (int i = 0; i < kRounds; ++i) {
    found += welch_test(normal(random, 10, 0, 0.03), normal(random, 10, 0, 0.05)).p < 0.05;
  }
  // 100 expected; 140 is four standard deviations more.
  EXPECT_LT(found, 140);
  EXPECT_GT(found, 60);
}

// lm(y ~ side + x) by hand: y = side + 2 x exactly, with x far apart between the sides.
TEST(Statistics, BesideACovariateOnlyTheRestCounts) {
  std::array xa{0.0, 1.0, 2.0}, xb{1.0, 2.0, 4.0};
  std::array noise{0.01, -0.02, 0.01};
  std::array<double, 3> a{}, b{};
  for (size_t i = 0; i < 3; ++i) {
    a[i] = 2 * xa[i] + noise[i];
    b[i] = 1 + 2 * xb[i] - noise[i];
  }
  Beside beside = welch_beside(a, b, xa, xb);
  EXPECT_NEAR(beside.slope, 2, 0.02);
  EXPECT_NEAR(beside.welch.difference, 1, 0.03);
  EXPECT_LT(beside.welch.p, 0.001);
  EXPECT_GT(welch_test(a, b).p, 0.05) << "which the covariate hid";
}

TEST(Statistics, BesideACovariateNothingIsFoundInNothing) {
  std::mt19937_64 random(23);
  int found = 0;
  constexpr int kRounds = 2000;
  for (int i = 0; i < kRounds; ++i) {
    auto xa = normal(random, 6, 0, 0.05), xb = normal(random, 6, 0, 0.05);
    auto a = normal(random, 6, 0, 0.03), b = normal(random, 6, 0, 0.03);
    for (size_t k = 0; k < 6; ++k) a[k] += xa[k], b[k] += xb[k];
    found += welch_beside(a, b, xa, xb).welch.p < 0.05;
  }
  EXPECT_LT(found, 140) << "100 expected";
  EXPECT_GT(found, 60);
}

TEST(Statistics, TwoRunsASideHaveNoCovariate) {
  Beside beside = welch_beside(std::array{1.0, 2.0}, std::array{2.0, 3.0}, std::array{5.0, 6.0},
                               std::array{5.0, 6.0});
  EXPECT_EQ(beside.slope, 0);
  EXPECT_EQ(beside.welch.difference, 1);
}

TEST(Statistics, SplitNoiseGrowsWithTheSpread) {
  std::mt19937_64 random(19);
  double quiet = split_noise(normal(random, 10, 0, 0.01), 10, 10);
  double noisy = split_noise(normal(random, 10, 0, 0.1), 10, 10);
  EXPECT_GT(noisy, 4 * quiet);
  EXPECT_EQ(split_noise(std::array{1.0, 2.0, 3.0}, 3, 3), 0) << "too few to say";
}

}  // namespace
}  // namespace assay::analysis
