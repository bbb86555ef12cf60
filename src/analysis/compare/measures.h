// add_measures(): everything a comparison asks of whole runs: load, thread time, locks, categories,
// counters, memory.
//
// Two families are corrected for having asked them all: the headlines (throughput, latency, CPU)
// and the details below them. A measure's own floor is the comparison's, or what its runs differ by
// within a side, whichever is more. In: a Comparison with sides, unit and floor. Pure.
#pragma once

#include "analysis/compare/compare.h"

namespace assay::analysis {

void add_measures(Comparison& comparison);

}  // namespace assay::analysis
