// read_vitals(): what was measured, and the run's series, become the numbers of vital.h.
//
// In: Measured and the run's series. Out: Vitals. "Busy" is running + run-queue + blocked without
// idle, of the pools that do the work ("serving"); a parked pool or a housekeeping thread changes
// none of these numbers. Failures: the Reader's.
#pragma once

#include <set>
#include <string>

#include "analysis/measured.h"
#include "analysis/verdict/vital.h"
#include "run/reader.h"

namespace assay::analysis {

// The pools that do the target's work, by name: at least 3 % of the target's CPU time.
std::set<std::string> serving_pools(const Measured& run);

// The time of those pools.
TimeSplit serving_time(const Measured& run);

Result<Vitals> read_vitals(const Measured& run, const run::Reader& reader);

}  // namespace assay::analysis
