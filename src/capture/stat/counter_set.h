// CounterSet: the counters of a target's threads, and of all that they create.
//
// In: thread ids. Out: one Count per event, summed over the threads; what the hardware counted in
// turns is scaled to the whole time, and the share of the time that it counted is kept beside it.
// An event that cannot be counted says why; the others go on. Threads: one owner. Failures: no
// event at all could be opened for any thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "capture/stat/counter_events.h"
#include "os/counter_kernel.h"

namespace assay::capture {

using model::Counts;

class CounterSet {
 public:
  explicit CounterSet(os::CounterKernel& kernel) : kernel_(kernel) {}

  enum class Which : uint8_t { all, hardware };
  // Begins to count. Threads that have ended meanwhile are left out.
  Result<void> open(const std::vector<pid_t>& tids, Which which = Which::all);
  // Why an event is not counted; "" when it is.
  const std::string& problem(CounterId id) const { return problems_[static_cast<size_t>(id)]; }
  bool user_only() const { return user_only_; }

  Counts read_all();
  // Of one of open()'s threads, with what it created.
  Counts read_thread(pid_t tid);
  const std::vector<pid_t>& tids() const { return tids_; }

 private:
  struct Opened {
    pid_t tid = 0;
    CounterId id = CounterId::cpu_clock;
    UniqueFd fd;
  };
  void open_group(std::span<const CounterId> group, pid_t tid);
  Counts read(const std::vector<const Opened*>& events);

  os::CounterKernel& kernel_;
  std::vector<Opened> events_;
  std::vector<pid_t> tids_;
  std::array<std::string, kCounterCount> problems_;
  bool user_only_ = false;
};

// The counts between two readings; a counter that was not counted at both ends is not.
Counts counts_between(const Counts& before, const Counts& after);

}  // namespace assay::capture
