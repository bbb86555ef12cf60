// perf script text: every sample, or every wait, with its stack, as `perf script` prints them.
//
// Times are the run's clock in seconds with microseconds; the period is ns; waits have the event
// "off-cpu", or "runqueue" for time
// without a CPU. In: a SelectedRun; cpu and samples write samples, off, lock and waits write waits,
// wall writes both. Streams. Failures: the Reader's.
#pragma once

#include "formats/export/metric.h"
#include "formats/export/output.h"
#include "formats/export/selected_run.h"

namespace assay::formats {

Result<void> write_perf_script(SelectedRun& run, Metric metric, Output& output);

}  // namespace assay::formats
