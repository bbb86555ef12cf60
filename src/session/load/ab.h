// ab(): two variants of a server, started, driven, recorded and stopped in turns.
//
// The order is A B B A A B B A …, so that a machine that warms up or slows down does so for both.
// In: two commands, what to record and the load. Out: a run file per start, handed over as it is
// finished, with what the server printed beside it. A server is stopped by SIGTERM to its own
// process group. Ends early, with the runs it has, when `stop` is set. Failures: a command that
// cannot be started, ends before it answers or never does (with the end of what it printed);
// another server that answers at the load's address; those of record().
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "session/record/recorder.h"

namespace assay::session {

struct AbOptions {
  RecordOptions record;  // its target and output are set here
  std::vector<std::string> commands[2];
  int runs = 10;          // of each variant
  std::string directory;  // where the run files go; exists
};

struct AbRun {
  int variant = 0;  // 0 or 1
  int number = 1;   // of this variant
  std::string run_path;
};

// Which variant is started as the n-th, from 0.
int abba_variant(int n);

Result<void> ab(const AbOptions& options, const std::atomic<bool>& stop,
                const std::function<void(const AbRun&, const RecordProgress&)>& progress,
                const std::function<void(const AbRun&)>& on_run);

}  // namespace assay::session
