// WaitShapes: patterns in the order and length of waits that no single wait shows.
//
// In: every wait of a thread in time order. Out: shares for Vitals. Failures: none.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/profile/call_tree.h"
#include "analysis/report.h"

namespace assay::analysis {

class WaitShapes {
 public:
  WaitShapes(const CallTree& tree, size_t threads);
  void add(const model::Wait& wait, BlockKind kind, const PlacedWait& placed);
  void finish(Vitals& vitals) const;

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
