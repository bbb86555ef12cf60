#include "analysis/time/handoffs.h"

#include <algorithm>

namespace assay::analysis {
namespace {

// A pool that spends this much of its time in one kind of wait is held back, or fed, by that.
constexpr double kMostOfItsTime = 0.5;

}  // namespace

Handoffs::Handoffs(const IdleJudge& judge) : judge_(judge), groups_(judge.group_count()) {}

void Handoffs::add(const model::Wait& wait, BlockKind kind, bool idle, const PlacedWait& placed) {
  uint32_t group = judge_.group_of(wait.thread);
  if (placed.blocked_ns <= 0 || group >= groups_.size()) return;
  groups_[group].by_kind[static_cast<size_t>(kind)] += placed.blocked_ns;
  bool waits_for_a_thread = kind == BlockKind::condition || kind == BlockKind::futex;
  if (idle || !waits_for_a_thread || wait.waker == model::Wait::kNoWaker) return;
  uint32_t signaller = judge_.group_of(wait.waker);
  // Threads of one pool that wake each other say nothing of what the pool waits for.
  if (signaller < groups_.size() && signaller != group) {
    groups_[signaller].waited_for_ns += placed.blocked_ns;
  }
}

HandedOver Handoffs::finish(const std::vector<int64_t>& group_wall_ns) const {
  HandedOver handed;
  auto give = [](std::optional<int64_t>& to, int64_t ns) { to = to.value_or(0) + ns; };
  for (size_t i = 0; i < groups_.size() && i < group_wall_ns.size(); ++i) {
    const Group& group = groups_[i];
    if (group.waited_for_ns == 0 || group_wall_ns[i] <= 0) continue;
    auto mostly = [&](VerdictKind verdict) {
      int64_t sum = 0;
      for (const BlockKindRow& row : block_kinds()) {
        if (row.verdict == verdict) sum += group.by_kind[static_cast<size_t>(row.kind)];
      }
      return static_cast<double>(sum) / static_cast<double>(group_wall_ns[i]) >= kMostOfItsTime;
    };
    if (mostly(VerdictKind::downstream)) {
      give(handed.receive_ns, group.waited_for_ns);
    } else if (mostly(VerdictKind::disk)) {
      give(handed.disk_ns, group.waited_for_ns);
    }
  }
  return handed;
}

}  // namespace assay::analysis
