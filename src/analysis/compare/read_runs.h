// read_runs(): files become columns of one comparison, a few of them read at the same time.
//
// Runs are analysed on as many threads as there are CPUs and placed in the order given, so that the
// answer does not depend on which was ready first. Failures: the first run's, in order, that cannot
// be read, is empty or does not fit its neighbours in kind.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/run_values.h"

namespace assay::analysis {

// The selection, of threads, holds for every run.
Result<std::vector<RunValues>> read_runs(const std::vector<std::string>& paths, UnionTree& tree,
                                         const run::Selection& selection = {});

}  // namespace assay::analysis
