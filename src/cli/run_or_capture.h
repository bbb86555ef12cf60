// RunOrCapture: a run for a command that reads one, also of another tool's file.
//
// In: the path of a run file, or of a capture (also "-" or an http URL) that `import` would take. It
// is looked at when this is made, before the command is confined, and opened after. A capture is
// imported into a file without a name; what the import notes is printed on stderr, since no run keeps
// it: of missing times only when the command shows times. Out: a Reader that must not be asked for a
// twin(). Failures: those of the reader or of the import.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/flags/import_flags.h"
#include "run/reader.h"
#include "session/confined/confined.h"

namespace assay::cli {

class RunOrCapture {
 public:
  explicit RunOrCapture(std::string path);
  // Adds what open() will need.
  void allow(session::Confinement& rules) const;
  Result<std::unique_ptr<run::Reader>> open(const ImportFlags& flags, bool shows_times) const;

 private:
  std::string path_;
  bool is_capture_;
};

// What the import of these needs.
void allow_capture(session::Confinement& rules, const std::vector<std::string>& inputs);

}  // namespace assay::cli
