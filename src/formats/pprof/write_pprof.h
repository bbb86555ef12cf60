// pprof: a selection as a gzipped profile.proto, with all its quantities as sample types.
//
// In: a SelectedRun and its totals. Out: samples by stack with the labels process, pid, role,
// thread, tid, pool and category; one mapping per module with build id; locations with inlined
// functions, lines and mangled names. `metric` is what readers show first; of wall, waits end in a
// WaitLeaf. Failures: Output's, zlib's. Spec:
// https://github.com/google/pprof/blob/main/proto/profile.proto
#pragma once

#include "base/result.h"
#include "formats/export/output.h"
#include "formats/export/totals.h"

namespace assay::formats {

Result<void> write_pprof(const SelectedRun& run, const std::vector<TotalRow>& rows, Metric metric,
                         Output& output);

}  // namespace assay::formats
