// IdleSites: what was decided about every place where threads wait, with the evidence, to be shown.
//
// In: accounted waits of the shown threads with their placed time. Out: IdleDecisions of the places
// with at least 1 % of the thread time, longest first. Everything they rest on (stacks, wakers,
// descriptors, sockets) is in the run; the decision is made when the run is read. `tree`, `judge`
// and `run` must outlive it. Not thread-safe. Failures: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/idle/idle_reason.h"
#include "analysis/profile/call_tree.h"
#include "analysis/time/idle_judge.h"
#include "analysis/time/thread_time.h"

namespace assay::analysis {

struct IdleDecision {
  std::string pool;
  pid_t pid = 0;
  std::string role;  // of its process
  std::string site;  // the program's own frames above the wait, innermost first
  BlockKind kind = BlockKind::unknown;
  IdleReason reason = IdleReason::no_evidence;
  std::string rule;  // that decided; empty: none did
  int64_t time_ns = 0;
  double share = 0;  // of all thread time shown
  uint64_t waits = 0;
  // Of all waits there that could be for work, in the whole run; 0 waits: none could.
  uint64_t candidates = 0;
  uint64_t ended_by_target = 0, ended_by_pool = 0;
  double branch_work = 0;  // share of the pool's work on the way from its loop to the wait

  bool idle() const { return is_idle(reason); }
};

class IdleSites {
 public:
  IdleSites(const CallTree& tree, const IdleJudge& judge, const run::Contents& run);
  void add(const model::Wait& wait, BlockKind kind, IdleReason reason, const PlacedWait& placed);
  std::vector<IdleDecision> finish(int64_t all_ns) const;

 private:
  static constexpr uint32_t kNoRow = UINT32_MAX;
  struct Row {
    PathIndex path = 0;  // of a wait that stands for the others
    uint32_t next = kNoRow;
    uint32_t group = 0;
    model::ThreadId thread;
    BlockKind kind = BlockKind::unknown;
    IdleReason reason = IdleReason::no_evidence;
    int64_t ns = 0;
    uint64_t waits = 0;
  };
  Row& row_of(PathIndex trimmed, uint32_t group, BlockKind kind, IdleReason reason);
  std::string site_text(PathIndex path) const;
  IdleDecision decision_of(const Row& row, int64_t all_ns) const;

  const CallTree& tree_;
  const IdleJudge& judge_;
  const run::Contents& run_;
  std::vector<uint32_t> first_row_;  // by trimmed path
  std::vector<Row> rows_;
};

}  // namespace assay::analysis
