// ImportFlags: what may be said of another tool's file that the file does not say itself.
//
// Of `import`, and of commands that take such a file in a run's place. In: the command line; out:
// session::ImportOptions. Wrong words are the parser's failures.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "session/import/import.h"

namespace assay::cli {

class ImportFlags {
 public:
  void add_to(CLI::App& parser, const std::string& heading = "Options");
  void fill(session::ImportOptions& options) const;

 private:
  std::string unit_;
  std::string meaning_;
  double frequency_ = 0;
  bool no_names_ = false;
};

}  // namespace assay::cli
