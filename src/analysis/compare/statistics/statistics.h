// The statistics of comparing runs: the unit is the run, never the sample.
//
// In: one positive number per run and side (CPU time per request, say), as its logarithm where
// said, so that differences are ratios. Out: tests, intervals, corrections. Everything random is
// seeded: the same numbers give the same answer. Pure functions; never fail: with too few runs for
// a statement the answer is the one that claims nothing (p = 1, an infinite interval).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace assay::analysis {

struct Welch {
  double difference = 0;  // mean of `b` − mean of `a`
  double standard_error = 0;
  double degrees = 0;  // of freedom, by Welch and Satterthwaite
  double p = 1;        // two-sided
};
// Difference of two means without assuming equal variances. Needs two values a side.
Welch welch_test(std::span<const double> a, std::span<const double> b);

struct Beside {
  Welch welch;
  double slope = 0;          // of the values on the covariate, within the sides
  std::vector<double> a, b;  // the values as they would be at covariate 0
};
// The same beside a covariate with one value per run that the sides have in common (analysis of
// covariance, with Welch's variances): what the values follow it within the sides is taken out, and
// the error of that slope is part of the standard error. Where that would leave more than 70 % of
// the variance within the sides, or with fewer than three values a side, the covariate is left out;
// how far the sides are apart does not enter into that.
Beside welch_beside(std::span<const double> a, std::span<const double> b,
                    std::span<const double> covariate_a, std::span<const double> covariate_b);

struct Interval {
  double low = 0;
  double high = 0;
};
// The value that Student's distribution stays below with probability p.
double student_quantile(double degrees, double p);

// 95 % intervals of the difference of means: Student's, from a Welch test, and the percentile
// bootstrap over runs.
Interval student_interval(const Welch& welch, double confidence = 0.95);
Interval bootstrap_interval(std::span<const double> a, std::span<const double> b);

// P-values adjusted for having asked them all (false discovery rate), in the order given.
std::vector<double> benjamini_hochberg(std::span<const double> p);

// Two one-sided tests at 5 %: is the difference of means certainly within ±margin?
bool equivalent(const Welch& welch, double margin);

// How far apart two groups of the same side's runs lie: the 95th percentile over splits in halves,
// scaled to groups of `a_runs` and `b_runs`. 0 with fewer than four runs.
double split_noise(std::span<const double> values, size_t a_runs, size_t b_runs);

double mean(std::span<const double> values);

}  // namespace assay::analysis
