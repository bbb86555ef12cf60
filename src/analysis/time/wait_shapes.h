// WaitShapes: patterns in the order and length of waits that no single wait shows.
//
// In: every wait of a thread in time order. Out: WaitShapeShares. Failures: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/profile/call_tree.h"
#include "analysis/time/thread_time.h"

namespace assay::analysis {

// Each absent where too few waits tell it.
struct WaitShapeShares {
  std::optional<double> empty_polls, empty_wakeups;  // asleep again at once, at the same place
  std::optional<double> delayed_ack;  // of waits on sockets: as long as a delayed acknowledgement
  std::optional<double> preempted;    // of the run-queue time: taken away, not yet given
};

class WaitShapes {
 public:
  WaitShapes(const CallTree& tree, size_t threads);
  void add(const model::Wait& wait, BlockKind kind, const PlacedWait& placed);
  WaitShapeShares finish() const;

 private:
  struct Last {
    TimeNs end_ns = 0;
    PathIndex path = 0;
    bool set = false;
  };
  const CallTree& tree_;
  std::vector<Last> last_;  // by thread
  uint64_t polls_ = 0, empty_polls_ = 0, conditions_ = 0, empty_conditions_ = 0;
  uint64_t socket_waits_ = 0, delayed_ = 0;
  int64_t preempted_ns_ = 0, runqueue_ns_ = 0;
};

}  // namespace assay::analysis
