// node_changes(): every call path of a comparison, with what it cost on both sides and whether the
// difference is more than noise: what a differential flame graph is drawn from.
//
// With several runs a side each path of weight is tested like a function is (Welch on logarithms,
// Benjamini and Hochberg over all of them, beyond ±2 %); with one, the difference is
// compared with the samples' own error. Pure.
#pragma once

#include <vector>

#include "analysis/compare/compare.h"

namespace assay::analysis {

struct NodeChange {
  double base_self = 0;  // means over the runs, ns per unit of the comparison
  double next_self = 0;
  double base = 0;  // with callees
  double next = 0;
  bool shown = false;  // the difference is beyond noise
};

// By node of the tree.
std::vector<NodeChange> node_changes(const UnionTree& tree, const Comparison& comparison);

}  // namespace assay::analysis
