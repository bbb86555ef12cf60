// add_gains(): how much throughput removing a finding could bring at most, by operational laws.
//
// Removing a share f of the bottleneck's demand raises throughput by at most f / (1 − f), and never
// beyond what the next resource allows. What is not on the bottleneck brings nothing, and that is
// said. These are upper bounds, never promises. In: a Report with its verdict and findings. Pure.
#pragma once

#include "analysis/report.h"

namespace assay::analysis {

void add_gains(Report& report);

// Findings in the order in which they should be read: what invalidates the run, then by gain.
void sort_findings(Report& report);

}  // namespace assay::analysis
