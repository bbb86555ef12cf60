#include "analysis/interval.h"

#include <algorithm>
#include <cmath>

namespace assay::analysis {

Estimate wilson(double share, double samples) {
  if (!(samples > 0)) return {};
  constexpr double kZ = 1.959963984540054;  // 97.5 % quantile of the normal distribution
  share = std::clamp(share, 0.0, 1.0);
  double z2n = kZ * kZ / samples;
  double centre = (share + z2n / 2) / (1 + z2n);
  double half = kZ / (1 + z2n) * std::sqrt(share * (1 - share) / samples + z2n / (4 * samples));
  return {share, std::clamp(centre - half, 0.0, share), std::clamp(centre + half, share, 1.0)};
}

double effective_samples(double sum_weight, double sum_weight_squared) {
  return sum_weight_squared > 0 ? sum_weight * sum_weight / sum_weight_squared : 0;
}

}  // namespace assay::analysis
