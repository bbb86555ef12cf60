// IdleJudge: tells waiting for work from waiting while at work.
//
// Rules decide first (rules/idle: a loop's frame close above the wait; calls that are never idle).
// Where no rule knows the framework, the shape of a pool's stacks does: a wait for work is made by
// the frame that also does the pool's work, or by a branch of it that does no work of its own; a
// wait below that frame, in a branch that works, is part of a request. A process that does next to
// no work beside processes of the same pool that do (a master beside its workers) only waits for
// work. In: one pass of samples and
// waits (observe_*), then decide(); `tree`, `features` and `run` must outlive it. Out: idle() in
// constant time. Not thread-safe. Failures: none; what cannot be told is not idle.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

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

  bool idle(const model::Wait& wait, BlockKind kind) const;

  // Pools: the threads of one process that share a pool's name, in order of first sight.
  uint32_t group_of(model::ThreadId thread) const;
  size_t group_count() const { return groups_.size(); }

  // The nearest frame that is the program's own: below it only libraries' waiting and the kernel.
  PathIndex trimmed(PathIndex path) const { return trimmed_[path]; }

 private:
  enum class Known : uint8_t { unsure, idle, busy };
  // What one pool did at one of its own frames; chained by path, since a frame has few pools.
  struct Slot {
    uint32_t group = 0;
    uint32_t next = 0;
    PathIndex path = 0;      // trimmed
    int64_t cpu_ns = 0;      // of samples that end here; the waiting calls' own is left out
    uint64_t samples = 0;    // those
    int64_t waiting_ns = 0;  // of demand waits that end here
    uint64_t waits = 0;
    bool idle = false;  // decided
  };
  struct Group {
    std::vector<uint32_t> slots;
    int64_t cpu_ns = 0;
    uint64_t samples = 0;
    int64_t waiting_ns = 0;
    bool serves = false;
    uint32_t pool = 0;         // groups of one pool's name are of one pool
    bool keeps_house = false;  // does no work, beside a group of the same name that does
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
  void leave_out_waiting_calls();
  void find_housekeepers();
  Known by_rules(PathIndex path, BlockKind kind) const;
  void decide_group(Group& group);

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
  mutable std::vector<Known> known_;  // by path × kind
  mutable std::vector<uint8_t> looked_up_;
  int64_t all_cpu_ns_ = 0;
  bool imported_ = false;  // without samples it says nothing of who works
  std::vector<Slot> slots_;
  std::vector<uint32_t> first_slot_;  // by trimmed path
  std::vector<int64_t> work_;         // by path, of the group being decided
};

}  // namespace assay::analysis
