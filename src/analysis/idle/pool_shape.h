// PoolShape: where a pool waits for work, told by the shape of its stacks.
//
// A wait for work is made by the frame that also does the pool's work (its outermost loop), or by a
// branch of it that does hardly any work of its own; a wait below that frame, in a branch that
// works, is part of a request. What decides does not change between recordings of a steady server:
// which frames call which, whether a branch wakes other threads, who ends its waits. A share of
// time decides only with a wide margin. In: the places of one pool's threads that start in the same
// function. Out: each place's reason. Not thread-safe: it keeps scratch space. Failures: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/idle/idle_reason.h"
#include "analysis/profile/call_tree.h"

namespace assay::analysis {

// What one pool did at one of its own frames.
struct PoolSite {
  PathIndex path = 0;        // of the program's own frame
  int64_t cpu_ns = 0;        // of samples that end here; the waiting calls' own is left out
  uint64_t samples = 0;      // those
  uint64_t all_samples = 0;  // and the waiting calls'
  int64_t waiting_ns = 0;    // of demand waits that end here
  int64_t sleeping_ns = 0;   // of that: only time ends it
  uint64_t waits = 0;
  uint64_t by_target = 0;      // of the waits: another pool of the target ended them
  uint64_t by_pool = 0;        // a thread of the same pool did
  uint64_t wakes = 0;          // waits of other pools that were ended from here
  uint64_t accepted = 0;       // of the waits: on connections that clients opened
  int64_t answer_ns = 0;       // waited on connections that the target opened
  int64_t long_answer_ns = 0;  // of that: in waits too long to be for an answer
  // Decided:
  IdleReason reason = IdleReason::no_evidence;
  double branch_work = 0;  // of the pool's work: done on the way from its loop to the wait

  // Descriptors of short-lived connections are often gone before they are looked at: those that are
  // known tell of the others.
  bool of_clients() const { return accepted > waits / 10 && answer_ns == 0; }
  bool ended_outside() const { return by_target + by_pool <= waits / 10; }
  bool mostly_sleeps() const { return sleeping_ns > waiting_ns / 2; }
};

class PoolShape {
 public:
  // `depth` by path. Both must outlive it.
  PoolShape(const CallTree& tree, const std::vector<uint32_t>& depth);

  struct Context {
    bool samples_tell = true;  // false: a profile without samples, which does not say who works
    bool asks_outside = true;  // the target has, or may have, connections to other servers
  };
  void decide(std::span<PoolSite* const> sites, const Context& context);

 private:
  struct Candidate {
    PoolSite* site;
    PathIndex fork = 0;    // deepest frame above the wait that does most of the work
    PathIndex branch = 0;  // leads from there to the wait; 0: the fork itself waits
    bool notable = false;
  };
  struct Pool {
    int64_t work = 0, waiting_ns = 0;
    uint64_t samples = 0, waits = 0;
    bool placed = false;  // enough samples to place its work
    uint32_t top = UINT32_MAX;
    size_t branches_at_top = 0;  // in which something else than time is waited for
  };
  struct Weight {
    int64_t work = 0;
    uint64_t wakes = 0;
    uint32_t sites = 0;  // notable places of waits at and below
  };
  Pool sum_up(std::span<PoolSite* const> sites);
  Candidate place(PoolSite& site, const Pool& pool) const;
  void find_top(const std::vector<Candidate>& candidates, Pool& pool) const;
  IdleReason placed(const Candidate& candidate, const Pool& pool, const Context& context) const;
  IdleReason unplaced(const Candidate& candidate, const std::vector<Candidate>& all,
                      const Pool& pool, const Context& context) const;
  bool is_entry(const Candidate& candidate, const Pool& pool, const Context& context) const;
  bool notable(const PoolSite& site, const Pool& pool) const;

  const CallTree& tree_;
  const std::vector<uint32_t>& depth_;
  std::vector<Weight> weight_;  // by path, of the pool being decided
};

}  // namespace assay::analysis
