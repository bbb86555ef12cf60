// IdleJudge: tells waiting for work from waiting while at work.
//
// Rules decide first (rules/idle: a loop's frame close above the wait; calls that are never idle),
// then which way a connection was made, then the shape of the pool's stacks (pool_shape.h). Every
// answer is a reason (idle_reason.h), and holds for a place: a pool and the program's own frame
// that waits. In: one pass of samples and waits (observe_*), then decide(); `tree`, `features` and
// `run` must outlive it. Out: reason() in constant time. Not thread-safe. Failures: none; what
// cannot be told is not idle.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/idle/idle_reason.h"
#include "analysis/idle/pool_shape.h"
#include "analysis/profile/call_tree.h"
#include "analysis/rules/stack_features.h"
#include "analysis/time/wait_kind.h"
#include "run/reader.h"

namespace assay::analysis {

// The idle rules with their name sets' numbers.
struct IdleRules {
  struct Row {
    const IdleRule* rule;
    SetIndex set;
  };
  std::vector<Row> rows;  // busy rules first
  IdleRules(const RuleSet& rules, NameSets& sets);
};

class IdleJudge {
 public:
  IdleJudge(const CallTree& tree, const StackFeatures& features, const IdleRules& rules,
            const run::Contents& run);

  void observe_sample(const model::Sample& sample);
  void observe_wait(const model::Wait& wait, BlockKind kind);
  void decide();

  IdleReason reason(const model::Wait& wait, BlockKind kind) const;
  bool idle(const model::Wait& wait, BlockKind kind) const { return is_idle(reason(wait, kind)); }

  // What is known of a place; null: none of its waits could be a wait for work.
  const PoolSite* site(uint32_t group, PathIndex trimmed) const { return find(group, trimmed); }
  // The rule that decides, if one does.
  const IdleRule* rule_of(PathIndex path, BlockKind kind) const;

  // Pools: the threads of one process that share a pool's name, in order of first sight.
  uint32_t group_of(model::ThreadId thread) const;
  size_t group_count() const { return groups_.size(); }

  // The nearest frame that is the program's own: below it only libraries' waiting and the kernel.
  PathIndex trimmed(PathIndex path) const { return trimmed_[path]; }

 private:
  enum class Known : uint8_t { unsure, idle, busy };
  // Chained by path, since a frame has few pools.
  struct Slot : PoolSite {
    uint32_t group = 0;
    uint32_t next = 0;
  };
  struct Group {
    std::vector<uint32_t> slots;
    int64_t cpu_ns = 0;
    uint64_t waits = 0, sleeps = 0;  // demand waits, and those of them that only time ends
    uint64_t wakes = 0;              // waits of other groups that it ended
    bool serves = false;
    uint32_t pool = 0;  // groups of one pool's name are of one pool
    uint32_t process = 0;
    bool keeps_house = false;   // does no work, beside a group of the same name that does
    bool on_own_clock = false;  // only sleeps, for nobody
  };
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  // CPU time of a slot that was spent inside one call of a library's.
  struct CallCpu {
    int64_t ns = 0;
    uint64_t samples = 0;
  };
  bool is_candidate(const model::Wait& wait, BlockKind kind) const;
  Slot& slot_of(uint32_t group, PathIndex trimmed);
  const Slot* find(uint32_t group, PathIndex trimmed) const;
  void trim();
  void observe_waker(const model::Wait& wait, uint32_t group, PoolSite& site);
  void look_at_sockets(const run::Contents& run);
  bool from_clients_only(const model::Wait& wait, BlockKind kind, const PoolSite& site) const;
  void leave_out_waiting_calls();
  void find_housekeepers();
  Known by_rules(PathIndex path, BlockKind kind) const;
  void decide_group(Group& group, PoolShape& shape);

  const CallTree& tree_;
  const StackFeatures& features_;
  const IdleRules& rules_;
  std::vector<uint32_t> group_of_thread_;
  std::vector<Group> groups_;
  std::vector<PathIndex> trimmed_;
  std::vector<uint8_t> machinery_;  // by path: CPU here is the cost of waiting
  std::vector<PathIndex> call_;     // by path: the innermost user frame, when a library's; else 0
  std::vector<uint8_t> waited_in_;  // by call: demand waits were made in it
  std::unordered_map<uint64_t, CallCpu> call_cpu_;  // by slot × call
  std::vector<uint32_t> depth_;
  std::vector<PathIndex> entry_;      // by path: the outermost frame that is the program's own
  mutable std::vector<Known> known_;  // by path × kind
  mutable std::vector<uint8_t> looked_up_;
  int64_t all_cpu_ns_ = 0;
  bool imported_ = false;  // without samples it says nothing of who works
  std::vector<Slot> slots_;
  std::vector<uint32_t> first_slot_;  // by trimmed path
  std::vector<uint8_t> unix_;         // by process: it waits on sockets of its own machine
  bool wakers_known_ = false;
  bool clients_only_ = false;  // the target's connections are known, and clients opened them all
};

}  // namespace assay::analysis
