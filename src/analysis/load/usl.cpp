#include "analysis/load/usl.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <set>

namespace assay::analysis {
namespace {

constexpr int kRefits = 400;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Parameters {
  double lambda = 0, sigma = 0, kappa = 0;
};

double model(const Parameters& p, double n) {
  return p.lambda * n / (1 + p.sigma * (n - 1) + p.kappa * n * (n - 1));
}

// N/X = a + b (N − 1) + c N (N − 1), linear in a = 1/λ, b = σ/λ, c = κ/λ. Weighted by X/N, the
// residual is the relative error, which is what measurements of throughput have in common.
struct Row {
  std::array<double, 3> x{};
  double y = 0;
};

Row row_of(const UslPoint& point) {
  double n = point.concurrency;
  double weight = point.throughput / n;
  return {{weight, weight * (n - 1), weight * n * (n - 1)}, 1};
}

// Least squares over the chosen columns, by the normal equations; false when they are singular.
bool solve(std::span<const Row> rows, const std::vector<size_t>& columns,
           std::array<double, 3>& out) {
  size_t k = columns.size();
  std::array<std::array<double, 4>, 3> m{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < k; ++i) {
      for (size_t j = 0; j < k; ++j) m[i][j] += row.x[columns[i]] * row.x[columns[j]];
      m[i][k] += row.x[columns[i]] * row.y;
    }
  }
  for (size_t i = 0; i < k; ++i) {
    size_t pivot = i;
    for (size_t r = i + 1; r < k; ++r) {
      if (std::abs(m[r][i]) > std::abs(m[pivot][i])) pivot = r;
    }
    std::swap(m[i], m[pivot]);
    if (std::abs(m[i][i]) < 1e-300) return false;
    for (size_t r = 0; r < k; ++r) {
      if (r == i) continue;
      double factor = m[r][i] / m[i][i];
      for (size_t c = i; c <= k; ++c) m[r][c] -= factor * m[i][c];
    }
  }
  out = {};
  for (size_t i = 0; i < k; ++i) out[columns[i]] = m[i][k] / m[i][i];
  return true;
}

double squared_error(std::span<const Row> rows, const std::array<double, 3>& at) {
  double sum = 0;
  for (const Row& row : rows) {
    double residual = row.y - row.x[0] * at[0] - row.x[1] * at[1] - row.x[2] * at[2];
    sum += residual * residual;
  }
  return sum;
}

// The best of all choices of columns whose coefficients are not negative: with three columns that
// is the constrained optimum.
Parameters fit(std::span<const UslPoint> points) {
  std::vector<Row> rows;
  for (const UslPoint& point : points) rows.push_back(row_of(point));
  const std::vector<std::vector<size_t>> choices{{0, 1, 2}, {0, 1}, {0, 2}, {0}};
  std::array<double, 3> best{};
  double least = kInfinity;
  for (const auto& columns : choices) {
    std::array<double, 3> found{};
    if (!solve(rows, columns, found)) continue;
    if (found[0] <= 0 || found[1] < 0 || found[2] < 0) continue;
    double error = squared_error(rows, found);
    if (error < least) {
      least = error;
      best = found;
    }
  }
  if (best[0] <= 0) return {};
  return {1 / best[0], best[1] / best[0], best[2] / best[0]};
}

double peak_of(const Parameters& p) {
  if (p.kappa <= 0) return kInfinity;
  return p.sigma >= 1 ? 1 : std::max(1.0, std::sqrt((1 - p.sigma) / p.kappa));
}

double best_of(const Parameters& p) {
  if (p.kappa > 0) return model(p, peak_of(p));
  return p.sigma > 0 ? p.lambda / p.sigma : kInfinity;
}

UslRange middle_95(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  auto at = [&](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {at(0.025), at(0.975)};
}

// Residuals, relative and widened for the parameters they were fitted with, change places.
void add_ranges(std::span<const UslPoint> points, const Parameters& p, UslFit& fitted) {
  std::vector<double> relative;
  for (const UslPoint& point : points) {
    relative.push_back(point.throughput / model(p, point.concurrency) - 1);
  }
  auto n = static_cast<double>(points.size());
  double widen = n > 3 ? std::sqrt(n / (n - 3)) : 2;
  std::mt19937_64 random(1);
  std::uniform_int_distribution<size_t> any(0, points.size() - 1);
  std::vector<double> lambdas, sigmas, kappas, peaks;
  for (int i = 0; i < kRefits; ++i) {
    std::vector<UslPoint> again(points.begin(), points.end());
    for (UslPoint& point : again) {
      double shift = std::max(-0.9, widen * relative[any(random)]);
      point.throughput = model(p, point.concurrency) * (1 + shift);
    }
    Parameters q = fit(again);
    lambdas.push_back(q.lambda);
    sigmas.push_back(q.sigma);
    kappas.push_back(q.kappa);
    peaks.push_back(peak_of(q));
  }
  fitted.lambda_range = middle_95(lambdas);
  fitted.sigma_range = middle_95(sigmas);
  fitted.kappa_range = middle_95(kappas);
  fitted.peak_range = middle_95(peaks);
}

}  // namespace

double UslFit::at(double concurrency) const {
  return model({lambda, sigma, kappa}, concurrency);
}

Result<UslFit> fit_usl(std::span<const UslPoint> points) {
  std::set<double> levels;
  for (const UslPoint& point : points) {
    if (!(point.concurrency >= 1) || !(point.throughput > 0)) {
      return fail("at concurrency {:g} nothing was answered: the curve cannot be fitted",
                  point.concurrency);
    }
    levels.insert(point.concurrency);
  }
  if (levels.size() < 3) return fail("the curve needs at least three levels of concurrency");
  Parameters p = fit(points);
  if (p.lambda <= 0) return fail("no curve of this kind goes through the levels");
  UslFit fitted;
  fitted.lambda = p.lambda;
  fitted.sigma = p.sigma;
  fitted.kappa = p.kappa;
  fitted.peak_concurrency = peak_of(p);
  fitted.peak_throughput = best_of(p);
  fitted.knee_concurrency = std::isfinite(fitted.peak_throughput)
                                ? std::ceil(fitted.peak_throughput / p.lambda - 1e-9)
                                : kInfinity;
  for (const UslPoint& point : points) {
    double error = std::abs(point.throughput / model(p, point.concurrency) - 1);
    fitted.worst_error = std::max(fitted.worst_error, error);
  }
  add_ranges(points, p, fitted);
  return fitted;
}

}  // namespace assay::analysis
