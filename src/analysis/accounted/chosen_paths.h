// choose_paths(): which call paths of a run a Selection is about.
//
// In: focus, ignore and functions of a Selection, and the run's call tree. Out: a mark for each
// path; empty: all are chosen. A path is chosen when some function on it has the focus, some
// function on it is among the chosen numbers, and none is to be ignored. Pure. Failures: an
// expression that is none, a number that the tree does not have.
#pragma once

#include <vector>

#include "analysis/profile/call_tree.h"
#include "base/result.h"
#include "run/selection/selection.h"

namespace assay::analysis {

Result<std::vector<bool>> choose_paths(const run::Selection& selection, const CallTree& tree);

}  // namespace assay::analysis
