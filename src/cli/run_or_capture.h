// open_run_or_capture: a run for a command that reads one, also of another tool's file.
//
// In: the path of a run file, or of a capture (also "-" or an http URL) that `import` would take.
// Such a one is imported into a temporary file, which is gone before this returns, however the
// command ends; what the import notes is printed on stderr, since no run keeps it: of missing times
// only when the command shows times. Out: a Reader
// that must not be asked for a twin(). Failures: those of the reader or of the import.
#pragma once

#include <memory>
#include <string>

#include "cli/flags/import_flags.h"
#include "run/reader.h"

namespace assay::cli {

Result<std::unique_ptr<run::Reader>> open_run_or_capture(const std::string& path,
                                                         const ImportFlags& flags,
                                                         bool shows_times);

}  // namespace assay::cli
