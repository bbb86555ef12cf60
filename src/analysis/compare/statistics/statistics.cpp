#include "analysis/compare/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <boost/math/distributions/students_t.hpp>

namespace assay::analysis {
namespace {

constexpr int kBootstrapRounds = 4000;
constexpr int kSplitRounds = 400;
constexpr uint64_t kSeed = 20'26;
constexpr double kWorthACovariate = 0.7;  // of the variance: what it may leave

double variance(std::span<const double> values) {
  if (values.size() < 2) return 0;
  double centre = mean(values);
  double sum = 0;
  for (double value : values) sum += (value - centre) * (value - centre);
  return sum / static_cast<double>(values.size() - 1);
}

// Sum of the products of deviations from the means.
double squares(std::span<const double> x, std::span<const double> y) {
  double of_x = mean(x), of_y = mean(y), sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - of_x) * (y[i] - of_y);
  return sum;
}

// P(T > t) for Student's distribution; its limits where the test has no spread to judge by.
double upper_tail(double t, double degrees) {
  if (std::isnan(t)) return 0.5;
  if (std::isinf(t)) return t > 0 ? 0 : 1;
  return boost::math::cdf(
      boost::math::complement(boost::math::students_t_distribution<double>(degrees), t));
}

double percentile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  double at = share * static_cast<double>(values.size() - 1);
  auto below = static_cast<size_t>(at);
  size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double mean_of_draws(std::span<const double> values, std::mt19937_64& random) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += values[random() % values.size()];
  return sum / static_cast<double>(values.size());
}

}  // namespace

double mean(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Welch welch_test(std::span<const double> a, std::span<const double> b) {
  Welch out;
  out.difference = mean(b) - mean(a);
  if (a.size() < 2 || b.size() < 2) {
    out.standard_error = std::numeric_limits<double>::infinity();
    return out;
  }
  double of_a = variance(a) / static_cast<double>(a.size());
  double of_b = variance(b) / static_cast<double>(b.size());
  out.standard_error = std::sqrt(of_a + of_b);
  if (out.standard_error == 0) {  // the values of each side are all equal
    out.degrees = static_cast<double>(a.size() + b.size() - 2);
    out.p = out.difference == 0 ? 1 : 0;
    return out;
  }
  out.degrees = (of_a + of_b) * (of_a + of_b) /
                (of_a * of_a / static_cast<double>(a.size() - 1) +
                 of_b * of_b / static_cast<double>(b.size() - 1));
  out.p = std::min(1.0, 2 * upper_tail(std::abs(out.difference) / out.standard_error, out.degrees));
  return out;
}

Beside welch_beside(std::span<const double> a, std::span<const double> b,
                    std::span<const double> covariate_a, std::span<const double> covariate_b) {
  Beside without{welch_test(a, b), 0, {a.begin(), a.end()}, {b.begin(), b.end()}};
  double spread = squares(covariate_a, covariate_a) + squares(covariate_b, covariate_b);
  if (std::min(a.size(), b.size()) < 3 || spread <= 0) return without;
  Beside out = without;
  out.slope = (squares(a, covariate_a) + squares(b, covariate_b)) / spread;
  for (size_t i = 0; i < a.size(); ++i) out.a[i] -= out.slope * covariate_a[i];
  for (size_t i = 0; i < b.size(); ++i) out.b[i] -= out.slope * covariate_b[i];
  // One degree of freedom went into the slope, whose error counts by how far the covariates differ.
  auto runs = static_cast<double>(a.size() + b.size());
  double all = (squares(a, a) + squares(b, b)) / (runs - 2);
  double left = (squares(out.a, out.a) + squares(out.b, out.b)) / (runs - 3);
  if (left > kWorthACovariate * all) return without;
  out.welch = welch_test(out.a, out.b);
  if (out.welch.standard_error == 0) return out;
  double apart = mean(covariate_b) - mean(covariate_a);
  double error = out.welch.standard_error * out.welch.standard_error * (runs - 2) / (runs - 3) +
                 left * apart * apart / spread;
  out.welch.standard_error = std::sqrt(error);
  out.welch.degrees = std::max(1.0, out.welch.degrees - 1);
  double t = std::abs(out.welch.difference) / out.welch.standard_error;
  out.welch.p = std::min(1.0, 2 * upper_tail(t, out.welch.degrees));
  return out;
}

double student_quantile(double degrees, double p) {
  return boost::math::quantile(boost::math::students_t_distribution<double>(degrees), p);
}

Interval student_interval(const Welch& welch, double confidence) {
  if (std::isinf(welch.standard_error)) {
    double infinity = std::numeric_limits<double>::infinity();
    return {-infinity, infinity};
  }
  double reach =
      welch.standard_error == 0
          ? 0
          : student_quantile(welch.degrees, 1 - (1 - confidence) / 2) * welch.standard_error;
  return {welch.difference - reach, welch.difference + reach};
}

Interval bootstrap_interval(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2 || b.size() < 2) {
    double infinity = std::numeric_limits<double>::infinity();
    return {-infinity, infinity};
  }
  std::mt19937_64 random(kSeed);
  std::vector<double> differences(kBootstrapRounds);
  for (double& difference : differences) {
    double of_a = mean_of_draws(a, random);
    difference = mean_of_draws(b, random) - of_a;
  }
  return {percentile(differences, 0.025), percentile(differences, 0.975)};
}

std::vector<double> benjamini_hochberg(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t x, size_t y) { return p[x] > p[y]; });
  std::vector<double> adjusted(p.size());
  double least = 1;
  for (size_t i = 0; i < order.size(); ++i) {
    auto rank = static_cast<double>(order.size() - i);
    least = std::min(least, p[order[i]] * static_cast<double>(order.size()) / rank);
    adjusted[order[i]] = least;
  }
  return adjusted;
}

bool equivalent(const Welch& welch, double margin) {
  if (std::isinf(welch.standard_error)) return false;
  if (welch.standard_error == 0) return std::abs(welch.difference) < margin;
  double above = (welch.difference + margin) / welch.standard_error;
  double below = (margin - welch.difference) / welch.standard_error;
  return upper_tail(above, welch.degrees) < 0.05 && upper_tail(below, welch.degrees) < 0.05;
}

double split_noise(std::span<const double> values, size_t a_runs, size_t b_runs) {
  if (values.size() < 4 || a_runs == 0 || b_runs == 0) return 0;
  std::vector<double> shuffled(values.begin(), values.end());
  size_t half = shuffled.size() / 2;
  std::mt19937_64 random(kSeed);
  std::vector<double> distances(kSplitRounds);
  for (double& distance : distances) {
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    std::span<const double> all(shuffled);
    distance = std::abs(mean(all.first(half)) - mean(all.subspan(half)));
  }
  double of_halves =
      1.0 / static_cast<double>(half) + 1.0 / static_cast<double>(values.size() - half);
  double wanted = 1.0 / static_cast<double>(a_runs) + 1.0 / static_cast<double>(b_runs);
  return percentile(distances, 0.95) * std::sqrt(wanted / of_halves);
}

}  // namespace assay::analysis
