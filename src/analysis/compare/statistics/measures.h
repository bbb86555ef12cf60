// add_measures(): everything a comparison asks of whole runs: load, thread time, locks, categories,
// counters, memory.
//
// Two families are corrected for having asked them all: the headlines (throughput, latency, CPU)
// and the details below them (measure.h has the levels). In: a Comparison with sides, unit and the
// margin of "no change". Pure.
#pragma once

#include <string_view>

#include "analysis/compare/compare.h"

namespace assay::analysis {

void add_measures(Comparison& comparison);

// Whether some comparison may have a measure of that id, so that a slip is told before runs are
// recorded: "cpu_per_request", "latency_p99", "lock[NAME]_per_second".
bool is_measure_id(std::string_view id);

}  // namespace assay::analysis
