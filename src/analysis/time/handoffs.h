// Handoffs: follows a wait for another thread to what that thread was waiting for.
//
// A request that waits on a condition waits for the thread that signals it. Where wake-ups were
// seen, the time is given to the kind of wait that fills most of the signaller's pool's time; a
// signaller that runs most of the time is work, and nothing is given. In: placed waits with their
// wakers; then each pool's time by kind, idle included. Out: HandedOver. Failures: none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/time/idle_judge.h"
#include "analysis/time/thread_time.h"

namespace assay::analysis {

// Time spent waiting for threads that themselves wait; absent: for none that does.
struct HandedOver {
  std::optional<int64_t> receive_ns;  // for data: another service
  std::optional<int64_t> disk_ns;
};

class Handoffs {
 public:
  explicit Handoffs(const IdleJudge& judge);
  void add(const model::Wait& wait, BlockKind kind, bool idle, const PlacedWait& placed);
  // `group_wall_ns` by pool group: how long its threads lived inside the window, together.
  HandedOver finish(const std::vector<int64_t>& group_wall_ns) const;

 private:
  struct Group {
    std::array<int64_t, kBlockKindCount> by_kind{};  // idle included: where its threads rest
    int64_t waited_for_ns = 0;                       // by others, on conditions that it signals
  };
  const IdleJudge& judge_;
  std::vector<Group> groups_;
};

}  // namespace assay::analysis
