// What holds of the runs of both sides of a comparison. Pure.
#pragma once

#include <algorithm>

#include "analysis/compare/compare.h"

namespace assay::analysis {

template <class Has>
bool all_have(const Comparison& comparison, const Has& has) {
  return std::ranges::all_of(comparison.base.runs, has) &&
         std::ranges::all_of(comparison.next.runs, has);
}

template <class Has>
bool any_has(const Comparison& comparison, const Has& has) {
  return std::ranges::any_of(comparison.base.runs, has) ||
         std::ranges::any_of(comparison.next.runs, has);
}

inline bool any_imported(const Comparison& comparison) {
  return any_has(comparison, [](const RunValues& run) { return is_imported(run.run_kind); });
}

}  // namespace assay::analysis
