// A heap profile as gperftools writes it: text that google-pprof opens.
//
// In: a selection's totals; out: one line a stack with live and allocated objects and bytes,
// already scaled, then the mappings of the process that holds most. Frames without an address are
// left out. Failures: none.
#pragma once

#include <vector>

#include "formats/export/output.h"
#include "formats/export/selected_run.h"
#include "formats/export/totals.h"

namespace assay::formats {

void write_gperftools_heap(const SelectedRun& run, const std::vector<TotalRow>& rows,
                           Output& output);

}  // namespace assay::formats
