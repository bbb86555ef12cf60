// Locks: for each futex, how long threads waited, which threads waited, and which held the lock.
//
// A lock is one futex address of one process, named by its data symbol, where it has one, and by
// the call site that waits for it (the first frame that is neither the C nor the C++ library's).
// Of the locks that a program builds itself (wait_kind.h) many have no address that says anything:
// then all waits in one such function are one lock, across processes where they share memory.
// Only waits of kind lock count: a condition variable is told apart by its callers, never by the
// symbol of a mutex nearby. In: placed waits. Out: LockSummary rows, longest total wait first.
// `tree` must outlive it. Failures: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/locks/lock_shape.h"
#include "analysis/profile/call_tree.h"
#include "analysis/time/durations.h"
#include "analysis/time/idle_judge.h"
#include "analysis/time/thread_time.h"

namespace assay::analysis {

struct LockWaiter {
  std::string function;  // the call site
  std::string file;
  uint32_t line = 0;
  int64_t total_ns = 0;
  uint64_t waits = 0;
  std::vector<FrameText> frames;
};

struct LockHolder {
  std::string thread;    // the thread that released or owned it
  std::string function;  // where, when its stack is known
  uint64_t waits = 0;
};

struct LockSummary {
  std::string name;
  pid_t pid = 0;
  uint64_t address = 0;  // 0: waits without one (kernel locks, no system call seen)
  uint64_t waits = 0;
  int64_t total_ns = 0, mean_ns = 0, p99_ns = 0, max_ns = 0;
  double waited_share = 0;  // of the window with at least one waiter
  double mean_waiters = 0;  // while there was one
  uint32_t most_waiters = 0;
  uint32_t threads = 0;   // distinct waiters
  double busy_share = 0;  // total_ns of the target's busy time
  LockShape shape = LockShape::brief;
  bool allocator = false;  // the C library's own lock around its heap
  std::vector<LockWaiter> waiters;
  std::vector<LockHolder> holders;
};

class LockBuilder {
 public:
  LockBuilder(const CallTree& tree, const IdleJudge& judge, const run::Contents& run);
  void add(const model::Wait& wait, BlockKind kind, const PlacedWait& placed);
  std::vector<LockSummary> finish(size_t max, int64_t window_ns, int64_t busy_ns) const;

 private:
  struct Site {
    int64_t ns = 0;
    uint64_t waits = 0;
    model::StackId heaviest;
    int64_t heaviest_ns = 0;
  };
  struct Lock {
    pid_t pid = 0;
    uint64_t address = 0;
    PathIndex own = 0;  // where a function of the program's own locks stands; 0: a lock of libc
    Durations durations;
    std::map<PathIndex, Site> sites;  // by the caller's path
    std::map<uint32_t, uint64_t> waiters;
    std::map<std::pair<uint32_t, PathIndex>, uint64_t> holders;  // thread, and where it let go
    std::vector<std::pair<TimeNs, TimeNs>> intervals;
  };
  struct OwnLock {
    PathIndex at = 0;  // 0: there is none
    bool of_all_processes = false;
  };
  OwnLock own_lock(PathIndex path) const;
  PathIndex named_caller(PathIndex path) const;
  std::string own_name(pid_t pid, uint64_t address) const;
  std::vector<LockWaiter> waiters_of(const Lock& lock) const;  // the longest first
  std::vector<LockHolder> holders_of(const Lock& lock) const;  // the most frequent first
  std::string name_of(const LockSummary& row, PathIndex own) const;
  LockSummary summary(const Lock& lock, int64_t window_ns, int64_t busy_ns) const;

  const CallTree& tree_;
  const IdleJudge& judge_;
  const run::Contents& run_;
  std::map<std::pair<uint32_t, uint64_t>, size_t> index_;  // process, address (or site)
  std::vector<Lock> locks_;
};

}  // namespace assay::analysis
