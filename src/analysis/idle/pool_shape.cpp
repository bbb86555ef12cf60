#include "analysis/idle/pool_shape.h"

#include <algorithm>
#include <set>

#include "analysis/interval.h"

namespace assay::analysis {
namespace {

// A branch that does less of its pool's work than this only waits.
constexpr double kWorkShare = 0.03;
// The only wait of an outermost loop may take its work out of a queue on the way: that is some of a
// light pool's work, but far from most of it.
constexpr double kTakingShare = 0.2;
// The frame that does a pool's work holds at least this much of its CPU time.
constexpr double kMostWork = 0.5;
// An outermost loop holds all of it, but for what was done before the loop.
constexpr double kAllWork = 0.98;
// Below this many samples a pool's work cannot be placed.
constexpr uint64_t kEnoughSamples = 20;
// One place that takes this much of a pool's waiting is its resting place.
constexpr double kDominates = 0.9;
// Waits below this share of a pool's say nothing of where its loop is.
constexpr double kNotable = 0.001;
// A branch that wakes another thread this often per wait asks it; one that does so this seldom asks
// nobody.
constexpr double kAsks = 0.5;
constexpr double kAsksNobody = 0.1;

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

}  // namespace

PoolShape::PoolShape(const CallTree& tree, const std::vector<uint32_t>& depth)
    : tree_(tree), depth_(depth), weight_(tree.paths().size()) {}

bool PoolShape::notable(const PoolSite& site, const Pool& pool) const {
  return ratio(static_cast<double>(site.waiting_ns), static_cast<double>(pool.waiting_ns)) >=
         kNotable;
}

PoolShape::Pool PoolShape::sum_up(std::span<PoolSite* const> sites) {
  const auto& paths = tree_.paths();
  Pool pool;
  uint64_t all_samples = 0;
  for (const PoolSite* site : sites) {
    pool.work += site->cpu_ns;
    pool.samples += site->samples;
    pool.waiting_ns += site->waiting_ns;
    pool.waits += site->waits;
    all_samples += site->all_samples;
  }
  pool.placed = all_samples >= kEnoughSamples && pool.work > 0;
  for (const PoolSite* site : sites) {
    bool counts = site->waits > 0 && notable(*site, pool);
    if (site->cpu_ns == 0 && site->wakes == 0 && !counts) continue;
    for (PathIndex at = site->path; at != 0; at = paths[at].parent) {
      weight_[at].work += site->cpu_ns;
      weight_[at].wakes += site->wakes;
      weight_[at].sites += counts;
    }
  }
  return pool;
}

// The fork of a wait: with enough samples the innermost of its callers under which most of the work
// is done; otherwise the innermost under which the pool waits in another place, too.
PoolShape::Candidate PoolShape::place(PoolSite& site, const Pool& pool) const {
  Candidate candidate{&site, site.path, 0, notable(site, pool)};
  auto most = static_cast<int64_t>(kMostWork * static_cast<double>(pool.work));
  uint32_t alone = candidate.notable ? 1 : 0;
  auto forks = [&](PathIndex at) {
    return pool.placed ? weight_[at].work >= most : weight_[at].sites > alone;
  };
  while (candidate.fork != 0 && !forks(candidate.fork)) {
    candidate.branch = candidate.fork;
    candidate.fork = tree_.paths()[candidate.fork].parent;
  }
  if (candidate.fork == 0 && !pool.placed) return {&site, site.path, 0, candidate.notable};
  return candidate;
}

void PoolShape::find_top(const std::vector<Candidate>& candidates, Pool& pool) const {
  for (const Candidate& one : candidates) {
    if (one.notable) pool.top = std::min(pool.top, depth_[one.fork]);
  }
  std::set<PathIndex> branches;
  for (const Candidate& one : candidates) {
    if (!one.notable || depth_[one.fork] > pool.top || one.site->mostly_sleeps()) continue;
    branches.insert(one.branch != 0 ? one.branch : one.fork);
  }
  pool.branches_at_top = branches.size();
}

// The only wait of the outermost loop, and nothing was asked before it.
bool PoolShape::is_entry(const Candidate& one, const Pool& pool, const Context& context) const {
  const PoolSite& site = *one.site;
  if (pool.branches_at_top != 1 || site.mostly_sleeps()) return false;
  bool outermost = ratio(static_cast<double>(weight_[one.fork].work),
                         static_cast<double>(pool.work)) >= kAllWork;
  double asked =
      ratio(static_cast<double>(weight_[one.branch].wakes), static_cast<double>(site.waits));
  bool for_a_thread = site.by_target + site.by_pool > site.waits / 2;
  return outermost && (for_a_thread ? asked < kAsksNobody : !context.asks_outside);
}

IdleReason PoolShape::placed(const Candidate& one, const Pool& pool, const Context& context) const {
  double share = one.site->branch_work;
  // A sample or two of few are no work: the share's lower bound decides.
  double low = wilson(share, static_cast<double>(pool.samples)).low;
  if (low < kWorkShare && share < kTakingShare) return IdleReason::own_loop;
  if (share < kTakingShare && is_entry(one, pool, context)) return IdleReason::only_wait_of_loop;
  return IdleReason::branch_works;
}

IdleReason PoolShape::unplaced(const Candidate& one, const std::vector<Candidate>& all,
                               const Pool& pool, const Context& context) const {
  if (!context.samples_tell) return IdleReason::no_evidence;
  const PoolSite& site = *one.site;
  bool rests = ratio(static_cast<double>(site.waiting_ns), static_cast<double>(pool.waiting_ns)) >=
               kDominates;
  // Of several places at the loop, work comes to the one that the outside ends; a place where only
  // time is waited for is none.
  bool waits_for_more = !site.mostly_sleeps() && pool.branches_at_top == 1;
  bool only_one_from_outside = site.ended_outside() && !site.mostly_sleeps() &&
                               std::ranges::none_of(all, [&](const Candidate& other) {
                                 return other.site != one.site && other.notable &&
                                        depth_[other.fork] <= pool.top &&
                                        !other.site->mostly_sleeps() && other.site->ended_outside();
                               });
  bool known_wakers = std::ranges::any_of(
      all, [](const Candidate& other) { return other.site->by_target + other.site->by_pool > 0; });
  if (rests || waits_for_more || (known_wakers && only_one_from_outside)) {
    return IdleReason::resting_place;
  }
  return IdleReason::no_resting_place;
}

void PoolShape::decide(std::span<PoolSite* const> sites, const Context& context) {
  Pool pool = sum_up(sites);
  std::vector<Candidate> candidates;
  for (PoolSite* site : sites) {
    if (site->waits > 0) candidates.push_back(place(*site, pool));
  }
  find_top(candidates, pool);
  for (const Candidate& one : candidates) {
    PoolSite& site = *one.site;
    if (one.branch != 0) {
      site.branch_work =
          ratio(static_cast<double>(weight_[one.branch].work), static_cast<double>(pool.work));
    }
    bool asks =
        one.branch != 0 && site.by_target > site.waits / 2 &&
        static_cast<double>(weight_[one.branch].wakes) >= kAsks * static_cast<double>(site.waits);
    if (depth_[one.fork] > pool.top) {
      site.reason = IdleReason::inside_work;
    } else if (asks) {
      site.reason = IdleReason::asks_first;
    } else {
      site.reason =
          pool.placed ? placed(one, pool, context) : unplaced(one, candidates, pool, context);
    }
  }
  for (const PoolSite* site : sites) {
    for (PathIndex at = site->path; at != 0; at = tree_.paths()[at].parent) weight_[at] = {};
  }
}

}  // namespace assay::analysis
