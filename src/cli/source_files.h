// Source lines for findings: from the run itself and, only if the user asks for it, from files of this machine.
//
// In: a run, whose own source text comes first. A run is a foreign file: the paths in it are hostile, so files of this
// machine are read only with --source, and then only regular ones of limited size. Out: lines, or none. Failures: none
// are shown.
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
SourceLines source_lines(const run::Reader& reader, bool local);

}  // namespace assay::cli
