// changed_functions(): which functions explain a difference between two sets of runs.
#pragma once

#include <vector>

#include "analysis/compare/compare.h"

namespace assay::analysis {

struct ChangedFunctions {
  std::vector<Change> changes;  // largest first
  size_t tested = 0;
};

// `comparison` holds the sides and the unit.
ChangedFunctions changed_functions(const UnionTree& tree, const Comparison& comparison,
                                   size_t most);

}  // namespace assay::analysis
