// Source lines for findings, read at report time from files that a run's debug information names.
//
// In: a run (whose own source text comes first) and paths from the target, which are hostile: only
// regular files of limited size are read. Out: lines, or none. Failures: none are shown.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "run/reader.h"

namespace assay::cli {

using SourceLines =
    std::function<std::vector<std::string>(const std::string& file, uint32_t first, uint32_t last)>;

// `reader` must outlive what is given back.
SourceLines source_lines(const run::Reader& reader);

}  // namespace assay::cli
