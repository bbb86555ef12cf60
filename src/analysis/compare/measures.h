// add_measures(): everything a comparison asks of whole runs: load, thread time, locks, categories,
// counters, memory.
//
// Two families are corrected for having asked them all: the headlines (throughput, latency, CPU)
// and the details below them (measure.h has the levels). In: a Comparison with sides, unit and the
// margin of "no change". Pure.
#pragma once

#include "analysis/compare/compare.h"

namespace assay::analysis {

void add_measures(Comparison& comparison);

}  // namespace assay::analysis
