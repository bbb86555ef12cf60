// Totals: a selection's samples and waits, summed by thread, stack and kind of wait.
//
// What every format without a time axis is made from: one pass over the run, then rows. In: a
// SelectedRun. Out: rows in order of first sight, so the same run gives the same file. Memory: one
// row per distinct (thread, stack, kind). Failures: the Reader's.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "formats/export/metric.h"
#include "formats/export/selected_run.h"

namespace assay::formats {

struct TotalRow {
  model::ThreadId thread;
  model::StackId stack;
  bool waiting = false;                                     // else on-CPU
  analysis::BlockKind kind = analysis::BlockKind::unknown;  // of the wait
  int64_t samples = 0;
  int64_t cpu_ns = 0;
  int64_t waits = 0;  // that blocked
  int64_t off_ns = 0;
  int64_t runqueue_ns = 0;
  bool heap = false;  // of allocations: the rest below, rounded; else 0
  int64_t inuse_bytes = 0, inuse_objects = 0, alloc_bytes = 0, alloc_objects = 0;

  int64_t of(Metric metric) const;
};

Result<std::vector<TotalRow>> sum_up(SelectedRun& run);

}  // namespace assay::formats
