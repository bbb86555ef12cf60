// stat(): counts a target's events for a while.
//
// In: a target, found running or a command to launch, how long, and what drives it meanwhile. Out:
// counts of the whole time, of its threads and of each interval, as they come, the last of them
// perhaps shorter; top-down shares' counters and system calls where they can be had, with the
// reason where not. The whole, its threads and the intervals come from the same readings. A
// launched command is counted from its first instruction, and treated at the end as `record` does.
// Threads: the caller's. Failures: the target's, the counters', the load's; a target that ends,
// ends it early.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/counters.h"
#include "model/top_down.h"
#include "os/process/launch.h"
#include "session/lifecycle/end_reason.h"
#include "session/load/load_driver.h"
#include "target/target.h"

namespace assay::session {

struct StatOptions {
  target::TargetSpec target;
  int64_t duration_ns = 10 * kNsPerSecond;  // 0: until the target ends or it is told to stop
  int64_t interval_ns = 0;                  // 0: no intervals
  bool per_thread = false;
  bool syscalls = true;  // count system calls by name
  LoadRequest load;      // what drives the target meanwhile; empty: nothing
};

struct SyscallRate {
  std::string name;  // "futex", or its number
  uint64_t calls = 0;
};

// Of one thread that ran when counting began, with all that it started since.
struct ThreadCounts {
  pid_t pid = 0;
  pid_t tid = 0;
  std::string name;
  model::Counts counts;
};

struct StatOutcome {
  double seconds = 0;
  size_t processes = 0;  // when counting began
  size_t threads = 0;
  model::Counts counts;
  uint64_t voluntary_switches = 0;  // of all threads, those that ended included
  uint64_t involuntary_switches = 0;
  std::vector<ThreadCounts> per_thread;
  bool user_only = false;
  EndReason end = EndReason::time;
  std::optional<os::ExitStatus> launched_exit;  // of a launched command that has ended
  model::TopDownCounts top_down;
  uint64_t syscalls = 0;                // all of them
  std::vector<SyscallRate> by_syscall;  // most first
  std::string syscall_source;           // how they were counted; or why not
  uint64_t requests = 0;                // answered while it counted; 0: load was not measured
  std::string no_requests;              // why it was not, where there was load
};

// Seconds since counting began.
using IntervalSeen = std::function<void(double from_s, double to_s, const model::Counts&)>;

Result<StatOutcome> stat(const StatOptions& options, const std::atomic<bool>& stop,
                         const IntervalSeen& interval_seen);

// What can be counted here, tried on this very process.
struct Countable {
  model::Counts events;
  std::string top_down;  // "" or why not
  std::string syscalls;  // how, or why not
};
Countable countable_events();

}  // namespace assay::session
