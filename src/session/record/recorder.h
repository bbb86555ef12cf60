// Recorder: one capture of threads' time, from target to run file, in the steps of a Lifecycle.
//
//   reader thread    empties the rings                        (capture/perf/ring_reader)
//   consumer thread  orders, unwinds, classifies, interns     (Recording)
//   namer thread     symbolises new frames                    (FrameNamer)
//   writer thread    commits to the run file every second     (run::Writer::flush)
//   calling thread   waits for the end, polls counters, shows progress
//
// Ends by time, by request (`stop`), when the target is gone, or when the disk is full; whatever
// the reason, what was captured is in the file and the file opens. Never stops or signals the
// target (but for the moment that a heap sampler needs, where one was asked for), except a command
// it launched itself: when it is told to stop, and at the end of a capture that had load to drive
// it with or was asked to stop it.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "session/heap/heap_capture.h"
#include "session/lifecycle/capture_options.h"
#include "session/lifecycle/progress.h"
#include "session/load/load_driver.h"
#include "session/record/bpf_backend.h"

namespace assay::session {

enum class Backend : uint8_t { automatic, bpf, perf };

struct RecordOptions : CaptureOptions {
  int64_t warmup_ns = 0;
  int frequency_hz = 99;
  bool wakeups = true;
  Backend backend = Backend::automatic;
  bool stop_launched = false;  // a launched command ends with the capture, load or not
  bool counters = false;       // hardware counters, too: they cost time at every context switch

  BpfCheck bpf_check;         // for tests of the BPF backend
  bool per_task = false;      // follow the target's threads even where whole CPUs could be sampled
  bool unprivileged = false;  // behave as if no privilege were there (for tests and comparisons)
  std::optional<HeapSampling> heap;  // sample allocations as well
  LoadRequest load;                  // what drives the target meanwhile; empty: nothing
};

struct RecordProgress : CaptureProgress {
  uint64_t samples = 0;
  uint64_t waits = 0;
  uint64_t lost = 0;
  size_t processes = 0;
  size_t threads = 0;
};

struct RecordOutcome : CaptureOutcome {
  uint64_t samples = 0;
  uint64_t waits = 0;
  uint64_t lost = 0;
  uint64_t allocations = 0;     // sampled
  std::vector<HeapHold> holds;  // of single threads, by attaching and detaching the sampler
  BpfReport bpf;                // what the BPF backend says of itself
};

// `stop` ends the capture early; `progress` is called a few times a second from this thread.
Result<RecordOutcome> record(const RecordOptions& options, const std::atomic<bool>& stop,
                             const std::function<void(const RecordProgress&)>& progress);

}  // namespace assay::session
