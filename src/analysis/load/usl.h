// The Universal Scalability Law: throughput against concurrency, fitted.
//
//   X(N) = λ N / (1 + σ (N − 1) + κ N (N − 1))
//
// λ: throughput of one client alone. σ: the share of work that is serial (contention). κ: what each
// pair of clients costs (crosstalk). With κ > 0 throughput has a maximum at N* = √((1 − σ) / κ) and
// falls behind it; with κ = 0 it only flattens, towards λ/σ.
//
// In: measured levels. Out: the fit by least squares of relative error, with σ, κ ≥ 0, and the
// spread of everything derived from it by refitting resampled residuals (the same seed, so the same
// input gives the same output). Pure. Failures: fewer than three different levels, or a level
// without throughput.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace assay::analysis {

struct UslPoint {
  double concurrency = 0;
  double throughput = 0;  // per second
};

struct UslRange {
  double low = 0, high = 0;  // 95 % of the refits lie between
};

struct UslFit {
  double lambda = 0, sigma = 0, kappa = 0;
  UslRange lambda_range, sigma_range, kappa_range;
  double peak_concurrency = 0;  // N*; infinite when κ is 0
  double peak_throughput = 0;   // at N*, or the limit λ/σ; infinite when both are 0
  UslRange peak_range;          // of N*
  // The knee: where the line of one client's throughput meets the best, ⌈X* / λ⌉; beyond it more
  // clients mostly wait. Infinite when there is no best.
  double knee_concurrency = 0;
  double worst_error = 0;  // largest relative distance of a level from the curve

  double at(double concurrency) const;
};

Result<UslFit> fit_usl(std::span<const UslPoint> points);

}  // namespace assay::analysis
