// Estimate: a share measured by samples, with its 95 % interval.
//
// Wilson's score interval, which stays inside [0, 1] and is honest with few samples: 1 of 110 is
// 0.2–5.0 %, not 0.9 %. Pure; never fails.
#pragma once

#include <cstdint>

namespace assay::analysis {

struct Estimate {
  double share = 0;
  double low = 0;
  double high = 1;
};

// `share` observed in `samples` independent samples (0 samples: nothing is known).
Estimate wilson(double share, double samples);

// Samples of unequal weight say as much as this many equal ones: (Σw)² / Σw² (Kish).
double effective_samples(double sum_weight, double sum_weight_squared);

}  // namespace assay::analysis
