// The files that people expect beside a run: per process its stacks and flame graphs, on-CPU and
// off-CPU, and the report.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "run/reader.h"

namespace assay::cli {

// Writes ROLE.oncpu.folded, ROLE.oncpu.svg, ROLE.offcpu.folded, ROLE.offcpu.svg per process, and
// report.txt and report.json, into an existing directory. Gives the paths back.
Result<std::vector<std::string>> write_out_dir(const run::Reader& reader,
                                               const std::string& run_path,
                                               const std::string& directory);

}  // namespace assay::cli
