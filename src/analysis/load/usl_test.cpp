#include "analysis/load/usl.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace assay::analysis {
namespace {

std::vector<UslPoint> curve(double lambda, double sigma, double kappa,
                            std::initializer_list<double> levels, double noise = 0) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> spread(1 - noise, 1 + noise);
  std::vector<UslPoint> points;
  for (double n : levels) {
    double x = lambda * n / (1 + sigma * (n - 1) + kappa * n * (n - 1));
    points.push_back({n, noise > 0 ? x * spread(random) : x});
  }
  return points;
}

TEST(Usl, FindsTheCurveItCameFrom) {
  auto fit = fit_usl(curve(1000, 0.05, 0.002, {1, 2, 4, 8, 16, 32, 64}));
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->lambda, 1000, 1);
  EXPECT_NEAR(fit->sigma, 0.05, 1e-4);
  EXPECT_NEAR(fit->kappa, 0.002, 1e-5);
  EXPECT_NEAR(fit->peak_concurrency, std::sqrt(0.95 / 0.002), 0.1);
  EXPECT_NEAR(fit->peak_throughput, fit->at(fit->peak_concurrency), 1e-6);
  EXPECT_LT(fit->worst_error, 1e-6);
  EXPECT_LE(fit->knee_concurrency, fit->peak_concurrency);
}

TEST(Usl, NoiseWidensTheRangesAndTheTruthIsInside) {
  auto fit = fit_usl(curve(1000, 0.05, 0.002, {1, 2, 4, 8, 16, 32, 64}, 0.03));
  ASSERT_TRUE(fit);
  EXPECT_LE(fit->sigma_range.low, 0.05);
  EXPECT_GE(fit->sigma_range.high, 0.05);
  EXPECT_LE(fit->kappa_range.low, 0.002);
  EXPECT_GE(fit->kappa_range.high, 0.002);
  EXPECT_LT(fit->lambda_range.low, fit->lambda_range.high);
  EXPECT_LE(fit->peak_range.low, fit->peak_concurrency);
  EXPECT_GE(fit->peak_range.high, fit->peak_concurrency);
}

TEST(Usl, OneServerThatSerialisesEverything) {
  // Flat from the first client on: σ is 1 and more clients only wait.
  std::vector<UslPoint> flat{{1, 500}, {2, 500}, {4, 500}, {8, 500}};
  auto fit = fit_usl(flat);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->sigma, 1, 1e-6);
  EXPECT_NEAR(fit->peak_throughput, 500, 1);
  EXPECT_EQ(fit->knee_concurrency, 1);
}

TEST(Usl, LinearHasNoPeak) {
  auto fit = fit_usl(curve(100, 0, 0, {1, 2, 4, 8}));
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->sigma, 0, 1e-9);
  EXPECT_NEAR(fit->kappa, 0, 1e-9);
  EXPECT_TRUE(std::isinf(fit->peak_concurrency) || fit->peak_concurrency > 1e3);
}

TEST(Usl, BetterThanLinearIsHeldAtLinear) {
  std::vector<UslPoint> super{{1, 100}, {2, 220}, {4, 500}, {8, 1100}};
  auto fit = fit_usl(super);
  ASSERT_TRUE(fit);
  EXPECT_GE(fit->sigma, 0);
  EXPECT_GE(fit->kappa, 0);
  EXPECT_GT(fit->worst_error, 0.05);
}

TEST(Usl, FallingThroughputHasItsPeakInside) {
  std::vector<UslPoint> falls{{1, 1000}, {2, 1700}, {4, 2200}, {8, 2000}, {16, 1400}};
  auto fit = fit_usl(falls);
  ASSERT_TRUE(fit);
  EXPECT_GT(fit->peak_concurrency, 2);
  EXPECT_LT(fit->peak_concurrency, 9);
}

TEST(Usl, WhatCannotBeFitted) {
  EXPECT_FALSE(fit_usl({}));
  EXPECT_FALSE(fit_usl(std::vector<UslPoint>{{1, 10}, {2, 20}}));
  EXPECT_FALSE(fit_usl(std::vector<UslPoint>{{1, 10}, {1, 11}, {1, 12}}));
  EXPECT_FALSE(fit_usl(std::vector<UslPoint>{{1, 10}, {2, 0}, {4, 20}}));
  EXPECT_FALSE(fit_usl(std::vector<UslPoint>{{0, 10}, {2, 10}, {4, 20}}));
}

TEST(Usl, TheSameInputGivesTheSameOutput) {
  auto points = curve(1000, 0.1, 0.01, {1, 2, 4, 8, 16}, 0.05);
  auto a = fit_usl(points), b = fit_usl(points);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->sigma_range.low, b->sigma_range.low);
  EXPECT_EQ(a->peak_range.high, b->peak_range.high);
}

}  // namespace
}  // namespace assay::analysis
