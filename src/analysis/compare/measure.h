// Measures: one number per run and side becomes a ratio with its interval and a finding.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/compare/compare.h"

namespace assay::analysis {

// Values of zero are set to `least` (half a sample, say), so that their logarithm exists.
Measure make_measure(std::string id, std::string name, std::string unit,
                     std::span<const double> base, std::span<const double> next, double least);

// Decides by p (adjusted, where it was one of many), interval and floor.
Outcome outcome_of(const Measure& measure, double p, double floor, bool within_floor);

// What a run's time is divided by, and shown in.
double divisor(const RunValues& run, Per per);

}  // namespace assay::analysis
