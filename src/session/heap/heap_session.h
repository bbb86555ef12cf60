// profile_heap(): one heap profile from target to run file.
//
// As record() does for time: finds or launches the target, brings the sampler into it, reads until
// the time is over, somebody stops it or the target is gone, and leaves a run file that opens
// whatever happens. Threads: the caller's reads channels; a namer and a flusher run beside it.
// Failures: a target that cannot be sampled is an Error that says why and what to do instead.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/run_info.h"
#include "os/process/launch.h"
#include "session/record/capture_options.h"
#include "session/heap/heap_capture.h"

namespace assay::session {

struct HeapOptions : CaptureOptions {
  HeapSampling sampling;
};

struct HeapProgress {
  TimeNs now = 0;
  TimeNs begin = 0;
  int64_t duration_ns = 0;
  uint64_t allocations = 0;
  int64_t live_bytes = 0;
  std::string phase;
};

struct HeapOutcome {
  // A launched command ended before anything of it could be seen: there is no run file.
  bool ended_at_once = false;
  model::RunInfo info;
  uint64_t allocations = 0;  // sampled
  uint64_t dropped = 0;
  std::vector<HeapHold> holds;  // of single threads, by attaching and detaching
  std::optional<os::ExitStatus> launched_exit;
  std::optional<Error> write_error;
};

Result<HeapOutcome> profile_heap(const HeapOptions& options, const std::atomic<bool>& stop,
                                 const std::function<void(const HeapProgress&)>& progress);

}  // namespace assay::session
