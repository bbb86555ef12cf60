// speedscope: one profile per thread and metric, in the order of time.
//
// In: a SelectedRun. Without a metric every thread gets its on-CPU profile and its off-CPU profile;
// wall puts both on one axis, the waits with a WaitLeaf below. Out: JSON after
// https://www.speedscope.app/file-format-schema.json. Neighbours in time with the same stack are
// one sample. Failures: the Reader's.
#pragma once

#include <optional>

#include "formats/export/metric.h"
#include "formats/export/output.h"
#include "formats/export/selected_run.h"

namespace assay::formats {

Result<void> write_speedscope(SelectedRun& run, std::optional<Metric> metric, Output& output);

}  // namespace assay::formats
