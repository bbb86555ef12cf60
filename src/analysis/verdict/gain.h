// gains_of(): how much throughput removing a finding could bring at most, by operational laws.
//
// Removing a share f of the bottleneck's demand raises throughput by at most f / (1 − f), and never
// beyond what the next resource allows. What is not on the bottleneck brings nothing, and that is
// said. These are upper bounds, never promises. In: vitals, the verdict's kind and the findings.
// Out: one Gain for each finding, in their order. Pure.
#pragma once

#include <vector>

#include "analysis/report.h"

namespace assay::analysis {

std::vector<Gain> gains_of(const Vitals& vitals, VerdictKind verdict,
                           const std::vector<Diagnosis>& findings);

// Findings with their gains, in the order in which they should be read: what invalidates the run,
// then by gain.
std::vector<Finding> ranked(std::vector<Diagnosis> findings, std::vector<Gain> gains);

}  // namespace assay::analysis
