// Thread time: every thread's wall time in the window, split exclusively, adding up exactly.
//
//   wall = running user + running kernel + run-queue + Σ blocked by kind + idle
//
// The time between a wake-up and the run queue is one of the kinds (BlockKind::wakeup).
//
// A thread's waits are all its time off the CPU; what lies between them it ran. Running is divided
// into user and kernel by the thread's own samples, or by utime:stime where those are few.
// Run-queue time is what waits measured themselves (preempted, wake-up seen), plus, for waits whose
// wake-up was not seen, the thread's run_delay shared out equally over its wake-ups. Idle is what
// was waited for work (idle_judge.h), and not among the blocked kinds. In: samples and waits, each
// thread's waits in time order (whatever overlaps an earlier wait of the same thread is cut off and
// counted). Out: ThreadTimes. Not thread-safe. Failures: none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/accounted/thread_cover.h"
#include "analysis/profile/call_tree.h"
#include "analysis/profile/thread_counters.h"
#include "analysis/time/wait_kind.h"
#include "run/reader.h"

namespace assay::analysis {

struct TimeSplit {
  int64_t wall_ns = 0;
  int64_t user_ns = 0;
  int64_t kernel_ns = 0;
  int64_t runqueue_ns = 0;
  int64_t idle_ns = 0;
  std::array<int64_t, kBlockKindCount> blocked_ns{};

  int64_t running_ns() const { return user_ns + kernel_ns; }
  int64_t blocked_total_ns() const;
  int64_t sum_ns() const { return running_ns() + runqueue_ns + idle_ns + blocked_total_ns(); }
  int64_t busy_ns() const { return running_ns() + runqueue_ns + blocked_total_ns(); }
  void add(const TimeSplit& other);
  int64_t& of(BlockKind kind) { return blocked_ns[static_cast<size_t>(kind)]; }
  int64_t of(BlockKind kind) const { return blocked_ns[static_cast<size_t>(kind)]; }
};

struct ThreadTime {
  model::ThreadId id;
  pid_t pid = 0;
  pid_t tid = 0;
  std::string name;
  std::string pool;
  std::string role;  // of its process
  TimeSplit time;
  uint64_t samples = 0;
  uint64_t waits = 0;
  uint64_t idle_waits = 0;  // of them: for work
};

struct PoolTime {
  std::string pool;
  uint32_t threads = 0;
  TimeSplit time;
};

struct ProcessTime {
  model::Process process;
  uint32_t threads = 0;
  TimeSplit time;
  std::vector<PoolTime> pools;  // most running first
};

// The check of promise 1 against the scheduler's own clock.
struct Accounting {
  uint32_t threads_checked = 0;
  double error_share = 0;  // Σ|running − kernel's account| / Σ time checked
  double worst_share = 0;  // of one thread, among those long enough to judge
  pid_t worst_tid = 0;
  int64_t checked_ns = 0;
  int64_t resolution_ns = 0;  // the readings' own error per thread: a tick at either end
  int64_t queued_ns = 0;         // run-queue time between the readings
  int64_t kernel_queued_ns = 0;  // the same by the kernel's own count (run_delay)
  uint64_t overlapping_waits = 0;
  int64_t overlapping_ns = 0;
  uint32_t threads_unseen = 0;  // not one sample or wait: their time is blocked, kind unknown
};

struct ThreadTimes {
  TimeSplit total;
  std::vector<ThreadTime> threads;     // by process, then most running first
  std::vector<ProcessTime> processes;  // most running first
  Accounting accounting;
};

// The part of a wait that blocks inside its thread's window.
struct PlacedWait {
  TimeNs begin_ns = 0;
  int64_t blocked_ns = 0;
  bool cut = false;  // the wait began before or ended after what could be seen
};

class ThreadTimeBuilder {
 public:
  // `selected` by thread index: the threads to account for. `run` must outlive the builder.
  ThreadTimeBuilder(const run::Contents& run, std::vector<ThreadCounters> counters,
                    std::vector<bool> selected);

  void add_sample(const model::Sample& sample, CodeKind leaf);
  PlacedWait add_wait(const model::Wait& wait, BlockKind kind, bool idle = false);
  ThreadTimes finish();

 private:
  // One slot per kind, and the last for idle.
  static constexpr size_t kSlots = kBlockKindCount + 1;
  static constexpr size_t kIdleSlot = kBlockKindCount;
  struct State {
    ThreadCover cover;        // of the thread's part of the window
    model::TimeSpan checked;  // between two readings of the kernel's own account
    int64_t off_in_check_ns = 0;
    int64_t queued_in_check_ns = 0;
    int64_t runqueue_ns = 0;                   // measured by the waits themselves
    std::array<int64_t, kSlots> blocked_ns{};  // measured
    std::array<int64_t, kSlots> unsplit_ns{};  // blocked, or run-queue at its end
    std::array<uint64_t, kSlots> wakeups{};    // of the unsplit waits
    int64_t sampled_user_ns = 0, sampled_kernel_ns = 0;
    uint64_t samples = 0, waits = 0, idle_waits = 0;
  };

  TimeSplit split_of(size_t thread, const State& process_sum);
  void split_unsplit(const State& state, const ThreadCounters& counters, TimeSplit& split) const;
  double kernel_share(const State& state, const ThreadCounters& counters,
                      const State& process_sum) const;
  bool unseen(size_t thread) const;
  void check(size_t thread);
  void group(ThreadTimes& times) const;

  const run::Contents& run_;
  std::vector<ThreadCounters> counters_;
  std::vector<bool> selected_;
  std::vector<State> states_;
  Accounting accounting_;
  int64_t error_ns_ = 0;
};

}  // namespace assay::analysis
