// Why an export would be empty, and what would fill it.
#pragma once

#include <vector>

#include "base/result.h"
#include "formats/export/metric.h"
#include "formats/export/totals.h"

namespace assay::formats {

bool has_any(const std::vector<TotalRow>& rows, Metric metric);

// The Error of a run (its totals: `rows`) that holds nothing of the metric.
Error missing_metric(const run::Contents& contents, const std::vector<TotalRow>& rows,
                     Metric metric);

// Fails for a metric that the run has values of which mean something else: the wall time of a run
// without waits would be CPU time under another name.
Result<void> check_evidence(const run::Contents& contents, Metric metric);

}  // namespace assay::formats
