// What must hold before an export is written: the format holds the metric, the run has it.
//
// In: a run, its totals, and what is asked for; out: nothing, or an Error that says what is missing
// and what would fill it. Neither a typing error in an expression nor a metric that was not
// recorded may look like "no time there". Failures besides: the Reader's.
#pragma once

#include <vector>

#include "formats/export/export.h"
#include "formats/export/totals.h"

namespace assay::formats {

// Whether the export shows one metric: all that the format can, or because it was asked for.
bool shows_one(const ExportOptions& options);
// What is shown when no metric was asked for.
Metric default_metric(const run::Contents& contents);

Result<void> check_format(const run::Contents& contents, const ExportOptions& options);
Result<void> check_any(const SelectedRun& run, const std::vector<TotalRow>& rows,
                       const ExportOptions& options);
// One side of a comparison; what a selection leaves of it may be nothing.
Result<void> check_side(SelectedRun& side, const std::vector<TotalRow>& rows, Metric metric,
                        const ExportOptions& options);

}  // namespace assay::formats
