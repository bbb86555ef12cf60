// stat(): counts a target's events for a while.
//
// In: a target and how long. Out: counts of the whole time and of each interval, as they come.
// Threads: the caller's. Failures: the target's, the counters'; a target that ends, ends it early.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/counters.h"
#include "target/target.h"

namespace assay::session {

struct StatOptions {
  target::TargetSpec target;
  int64_t duration_ns = 10 * kNsPerSecond;
  int64_t interval_ns = 0;  // 0: no intervals
  bool per_thread = false;
};

struct ThreadCounts {
  pid_t pid = 0;
  pid_t tid = 0;
  std::string name;
  model::Counts counts;
};

struct StatOutcome {
  double seconds = 0;
  size_t processes = 0;
  size_t threads = 0;
  model::Counts counts;
  uint64_t voluntary_switches = 0;  // of threads that lived throughout
  uint64_t involuntary_switches = 0;
  std::vector<ThreadCounts> per_thread;
  bool user_only = false;
  bool target_ended = false;
};

using IntervalSeen = std::function<void(double from_s, double seconds, const model::Counts&)>;

Result<StatOutcome> stat(const StatOptions& options, const std::atomic<bool>& stop,
                         const IntervalSeen& interval_seen);

// Whether each event can be counted here, tried on this very process.
model::Counts countable_events();

}  // namespace assay::session
