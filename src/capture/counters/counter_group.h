// CounterGroup: counters that are read together and come due together; and Cadence, which spaces
// them so that reading stays cheap.
//
// In: the living processes and threads; out: points in the SeriesBook. A group never fails: it
// leaves out values that it cannot read, and adds one QualityNote where evidence is lost by that.
// Threads: one.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "capture/counters/series_book.h"
#include "model/ids.h"

namespace assay::capture {

struct LiveProcess {
  model::ProcessId id;
  pid_t pid = 0;
};
struct LiveThread {
  model::ThreadId id;
  pid_t pid = 0, tid = 0;
};
struct LiveTasks {
  std::vector<LiveProcess> processes;
  std::vector<LiveThread> threads;
};

using Clock = std::function<TimeNs()>;

class CounterGroup {
 public:
  virtual ~CounterGroup() = default;
  virtual const char* name() const = 0;  // for notes: "threads' CPU time"
  virtual void poll(const LiveTasks& tasks) = 0;
  // Called between polls with the living tasks: values held back for other tasks are written and
  // dropped.
  virtual void forget_the_gone(const LiveTasks&) {}
};

// Decides when a group is due. A poll that cost c is followed by a pause of at least c / share, so
// the group never takes more than `share` of one CPU, however many threads there are.
class Cadence {
 public:
  Cadence(int64_t interval_ns, double share) : interval_ns_(interval_ns), share_(share) {}

  bool due(TimeNs now_ns) const { return now_ns >= next_ns_; }
  TimeNs next_ns() const { return next_ns_; }
  void ran(TimeNs now_ns, int64_t cost_ns) {
    // The first poll is slow because of cold caches and registrations: give the newest half of the
    // weight.
    cost_ns_ = cost_ns_ == 0 ? cost_ns : (cost_ns_ + cost_ns) / 2;
    pause_ns_ =
        std::max(interval_ns_, static_cast<int64_t>(static_cast<double>(cost_ns_) / share_));
    pause_ns_ = std::min(pause_ns_, std::max(interval_ns_, kLongestPauseNs));
    // Keep to the grid of intervals if possible, so that the duration of a poll does not shift
    // later polls.
    bool on_grid = next_ns_ != 0 && now_ns >= next_ns_ && now_ns - next_ns_ < pause_ns_;
    next_ns_ = (on_grid ? next_ns_ : now_ns) + pause_ns_;
  }
  int64_t interval_ns() const { return interval_ns_; }
  int64_t pause_ns() const { return pause_ns_; }

 private:
  static constexpr int64_t kLongestPauseNs = 30 * kNsPerSecond;
  int64_t interval_ns_;
  double share_;
  int64_t cost_ns_ = 0, pause_ns_ = 0;
  TimeNs next_ns_ = 0;
};

}  // namespace assay::capture
