// Collapsed by second: "second <TAB> stack <TAB> value", for heat maps over time.
//
// Seconds count from the beginning of the selection; a wait is shared out over the seconds that it
// covers. Stacks are as in the folded format. Failures: the Reader's.
#pragma once

#include "formats/export/metric.h"
#include "formats/export/output.h"
#include "formats/export/selected_run.h"

namespace assay::formats {

Result<void> write_by_second(SelectedRun& run, Metric metric, Output& output);

}  // namespace assay::formats
