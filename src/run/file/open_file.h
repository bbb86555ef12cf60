// open_run_file: a checked, read-only, defensive SQLite connection to a run.
//
// Reading changes nothing on disk. Changes that a killed capture did not finish are undone as its pages
// are read (run_file.h). The identity of the file is checked before SQLite sees it, its schema before
// any table is read. Failures: an Error says whether the file is missing, a directory, empty, truncated,
// foreign, newer than this program, still being written, or corrupt, and what to do.
#pragma once

#include <string>

#include "run/file/sqlite.h"

namespace assay::run {

Result<Database> open_run_file(const std::string& path);
// One that we have just written.
Result<Database> open_run_file(UniqueFd fd, const std::string& path);
// Another connection to the very file of this one, whatever its path leads to by now.
Result<Database> open_again(const Database& database);

// The Error for a run that opened but is inconsistent.
std::unexpected<Error> damaged(const std::string& path, std::string_view what);

}  // namespace assay::run
