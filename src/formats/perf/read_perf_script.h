// perf script text in: samples with their stacks, timed, threads told apart.
//
// In: what `perf script` prints by default, and what Assay exports: "comm pid/tid [cpu] time:
// period event:", then "addr symbol+off (file)" lines, leaf first, to an empty line. comm may have
// spaces; pid, cpu and period may be absent. One event makes the run: a clock
// if there is one, else cycles, else the first, tracepoints last; lines of PERF_RECORD_… are no
// samples. Samples of clock events weigh their period in ns; of others what the options say. The
// events "off-cpu" and "runqueue" become waits; where there are
// no others, their times are given up (RunBuilder::wait_in_row). Failures: a frame line outside of
// a sample, with its offset; no sample at all.
#pragma once

#include "formats/import/reading.h"

namespace assay::formats {

bool looks_like_perf_script(std::string_view bytes);
Result<void> read_perf_script(const Input& input, const ReadOptions& options, RunBuilder& builder);

}  // namespace assay::formats
