// Vitals: the numbers that verdicts and detectors are decided by, each known or absent.
//
// In: a Report whose thread time, categories, locks, workload and quality are filled, and the run's
// series. Out: Vitals. Detectors name them as in vital_names(). Shares are 0–1. "Busy" is running +
// run-queue + blocked without idle, of the pools that do the work ("serving": at least 3 % of the
// target's CPU time); a parked pool or a housekeeping thread changes none of these numbers.
// Failures: the Reader's.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/report.h"
#include "run/reader.h"

namespace assay::analysis {

// The pools that do the target's work, by name.
std::set<std::string> serving_pools(const Report& report);

Result<Vitals> read_vitals(const Report& report, const run::Reader& reader);

// Every number that a rule may ask for, by name.
using VitalField = std::optional<double> Vitals::*;
std::span<const std::pair<std::string_view, VitalField>> vital_names();
std::optional<double> vital(const Vitals& vitals, std::string_view name);  // absent: not known
bool is_vital(std::string_view name);

}  // namespace assay::analysis
