// import_files: captures that other tools made become a run.
//
// In: files (or http URLs of Go's /debug/pprof) in any format that formats/ reads, detected by
// their bytes; several merge into one run. Out: a run file, there whole or not at all. What a source does not know stays absent, and the run's notes say
// so. Threads: the symbolizer's. Failures: a file that cannot be read or is malformed, with its
// name and offset; a run that cannot be written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/import/reading.h"

namespace assay::session {

struct ImportOptions {
  std::vector<std::string> inputs;  // paths, "-", or http:// URLs
  std::string output;
  bool overwrite = false;
  std::string format;  // by its name; empty: detected
  formats::ReadOptions read;
  std::string command_line;
  std::string cache_dir;  // of unwind tables and symbols; empty: none
  bool symbolize = true;  // name addresses by the files of this machine
};

struct ImportOutcome {
  uint64_t samples = 0;
  uint64_t waits = 0;
  uint64_t heap_sums = 0;            // of heap profiles, by stack
  std::vector<std::string> formats;  // of each input
};

// Whether the run can be written where it shall be, and the inputs are not named twice.
Result<void> check_import(const ImportOptions& options);
// A confined process must have been checked before it was confined.
Result<ImportOutcome> import_files(const ImportOptions& options);
// Into an empty file of the caller's, in the place of options.output.
Result<ImportOutcome> import_into(UniqueFd file, const ImportOptions& options);

}  // namespace assay::session
