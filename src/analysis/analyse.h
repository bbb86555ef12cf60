// analyse(): a run becomes a Report, in one pass over its samples and one over its waits.
//
// In: a run::Reader. Out: Report; the same run and options give the same Report, byte for byte.
// Threads: none of its own; may run beside another analyse() on another Reader.
// Failures: the Reader's, unchanged; a selection that matches no thread.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "analysis/report.h"
#include "base/result.h"
#include "run/reader.h"

namespace assay::analysis {

struct Options {
  std::string run_path;  // for the report's own words
  // Empty: all. A thread is selected when it matches every list that is not empty.
  std::vector<pid_t> pids;
  std::vector<pid_t> tids;
  std::vector<std::string> pools;
  size_t max_functions = 200;
  size_t max_paths = 50;
  size_t max_waits = 50;
};

Result<Report> analyse(const run::Reader& reader, const Options& options);

}  // namespace assay::analysis
