// open_run_file: a checked, read-only, defensive SQLite connection to a run.
//
// After kill -9 SQLite's journal exists beside the run; it is rolled back here, in place or, where
// the file or its directory is read-only, in a private copy. Failures: an Error says whether the
// file is missing, a directory, empty, truncated, foreign, newer than this program, still being
// written, or corrupt, and what to do.
#pragma once

#include <string>

#include "run/file/sqlite.h"

namespace assay::run {

Result<Database> open_run_file(const std::string& path);

// The Error for a run that opened but is inconsistent.
std::unexpected<Error> damaged(const std::string& path, std::string_view what);

}  // namespace assay::run
