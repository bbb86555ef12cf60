// CounterSet: the counters of a target's threads, and of all threads and processes that they
// create.
//
// In: thread ids. Out: readings, and between two of them one Count per event, summed over the
// threads; counts of events that take turns are scaled to the interval, and the share of the time
// that was counted is kept. An event that cannot be counted has the reason; the others are counted.
// Threads: one owner. Failures: no event at all could be opened for any thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "capture/stat/counter_events.h"
#include "os/events/counter_kernel.h"

namespace assay::capture {

using model::Counts;

// One reading for each descriptor of a CounterSet, in its order; none where it could not be read.
// Empty: the time of opening, when all were zero.
using CounterReadings = std::vector<std::optional<os::CounterReading>>;

class CounterSet {
 public:
  explicit CounterSet(os::CounterKernel& kernel) : kernel_(kernel) {}

  enum class Which : uint8_t { all, hardware };
  // Begins to count. Threads that have ended meanwhile are left out.
  Result<void> open(const std::vector<pid_t>& tids, Which which = Which::all);
  // Why an event is not counted; "" when it is.
  const std::string& problem(CounterId id) const { return problems_[static_cast<size_t>(id)]; }
  bool user_only() const { return user_only_; }

  CounterReadings read();
  // The counts from one reading to the next. An event that was enabled in that time and never had a
  // turn is reported as not counted.
  Counts between(const CounterReadings& before, const CounterReadings& after) const;
  // The same for one of open()'s threads, with all that it created.
  Counts thread_between(pid_t tid, const CounterReadings& before,
                        const CounterReadings& after) const;
  const std::vector<pid_t>& tids() const { return tids_; }

 private:
  struct Opened {
    pid_t tid = 0;
    CounterId id = CounterId::cpu_clock;
    UniqueFd fd;
  };
  void open_group(std::span<const CounterId> group, pid_t tid);
  Counts sum(const CounterReadings& before, const CounterReadings& after,
             std::optional<pid_t> only) const;

  friend class CounterTotals;
  os::CounterKernel& kernel_;
  std::vector<Opened> events_;
  std::vector<pid_t> tids_;
  std::array<std::string, kCounterCount> problems_;
  bool user_only_ = false;
};

// CounterTotals: what a CounterSet has counted since it was opened, in numbers that never fall.
//
// Every advance() adds the counts since the last one, scaled by the turns of that time; a
// descriptor that had no turn is added at its next turn. `counted_share` is of the time since the
// last advance(). Threads: one owner; `set` must outlive it.
class CounterTotals {
 public:
  explicit CounterTotals(CounterSet& set) : set_(set) {}
  const Counts& advance();

 private:
  CounterSet& set_;
  std::vector<os::CounterReading>
      added_;  // the reading of each descriptor up to which it is in the totals
  CounterReadings last_;
  Counts totals_;
};

}  // namespace assay::capture
