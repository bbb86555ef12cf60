// SelectionFlags: the flags that choose a part of a run, the same for every command that reads
// runs.
//
// In: the command line. Out: a run::Selection. Failures: a time that is none is an Error (wrong
// usage); words that are no numbers are the parser's.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "run/selection/selection.h"

namespace assay::cli {

class SelectionFlags {
 public:
  // --pid, --tid, --pool, --process, --thread, --time
  void add_to(CLI::App& parser);
  // --from, --to, --focus, --ignore, --no-idle: for commands that show single stacks and waits.
  void add_stacks_to(CLI::App& parser);

  Result<run::Selection> selection() const;

 private:
  run::Selection selection_;
  std::string time_, from_, to_;
};

// For commands whose numbers hold of the whole window only: an Error where a time was given.
Result<void> refuse_time(const run::Selection& selection);

}  // namespace assay::cli
