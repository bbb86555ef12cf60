// What an imported profile counts, where that is neither time nor stands for it.
#pragma once

#include <string>
#include <vector>

#include "model/run_info.h"

namespace assay::analysis {

// "bytes", "goroutine", "page-faults": the fact `unit` of an import. Empty for times and for what
// grows with time on the CPU (samples, cycles), of which shares are shares of CPU time. Pure.
std::string imported_unit(const model::RunInfo& info, const std::vector<model::Fact>& facts);

}  // namespace assay::analysis
