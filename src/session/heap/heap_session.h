// profile_heap(): one heap profile from target to run file.
//
// In the steps of a Lifecycle, as record() does for time: finds or launches the target, brings the
// sampler into it, reads until the time is over, a stop is asked for or the target is gone, and
// leaves a run file that opens whatever happens. Threads: the caller's reads channels; a namer and
// a flusher run beside it. Failures: a target that cannot be sampled is an Error that says why and
// what to do instead.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "base/result.h"
#include "session/heap/heap_capture.h"
#include "session/lifecycle/capture_options.h"
#include "session/lifecycle/progress.h"

namespace assay::session {

struct HeapOptions : CaptureOptions {
  HeapSampling sampling;
};

struct HeapProgress : CaptureProgress {
  uint64_t allocations = 0;
  int64_t live_bytes = 0;
};

struct HeapOutcome : CaptureOutcome {
  // A launched command ended before anything of it could be seen: there is no run file.
  bool ended_at_once = false;
  uint64_t allocations = 0;  // sampled
  uint64_t dropped = 0;
  std::vector<HeapHold> holds;  // of single threads, by attaching and detaching
};

Result<HeapOutcome> profile_heap(const HeapOptions& options, const std::atomic<bool>& stop,
                                 const std::function<void(const HeapProgress&)>& progress);

}  // namespace assay::session
