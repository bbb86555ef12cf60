// sweep(): one short capture per level of concurrency, of the same server under the same load.
//
// In: what to record and how long, a load URL, the levels. Out: a run file per level, in order,
// handed over as it is finished. A server given as a command is started once and stopped at the
// end. Ends early, with the levels it has, when `stop` is set. Failures: those of record().
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "session/record/recorder.h"

namespace assay::session {

struct SweepOptions {
  RecordOptions record;  // load.what: the URL, without a number of connections
  std::vector<uint32_t> levels;
  std::string directory;  // where the run files go; exists
};

struct SweptLevel {
  uint32_t connections = 0;
  std::string run_path;
};

Result<void> sweep(const SweepOptions& options, const std::atomic<bool>& stop,
                   const std::function<void(uint32_t connections, const RecordProgress&)>& progress,
                   const std::function<Result<void>(const SweptLevel&)>& on_level);

}  // namespace assay::session
