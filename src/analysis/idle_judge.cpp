#include "analysis/idle_judge.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>

namespace assay::analysis {
namespace {

// A branch that does less of its pool's work than this only waits.
constexpr double kWorkShare = 0.03;
// The frame that does a pool's work holds at least this much of its CPU time.
constexpr double kMostWork = 0.5;
// Below this many samples a pool's work cannot be placed.
constexpr uint64_t kEnoughSamples = 20;
// One place that takes this much of a pool's waiting is its resting place.
constexpr double kDominates = 0.9;
constexpr double kServingShare = 0.03;  // of the target's CPU time

bool starts_any(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Libraries that wait on behalf of their callers.
bool is_library(const Function& function) {
  static constexpr std::string_view kModules[]{"libc.so",      "libc-",   "libpthread", "ld-",
                                               "libstdc++.so", "libc++",  "ld-musl",    "[vdso]",
                                               "libm.so",      "libgcc_s"};
  static constexpr std::string_view kNames[]{
      "std::",        "__gnu_cxx::", "__gthread",
      "pthread_",     "__pthread",   "boost::condition_variable",
      "boost::mutex", "absl::",      "parking_lot",
      "core::",       "alloc::",     "<core::",
      "<std::",       "epoll_wait",  "epoll_pwait",
      "syscall",      "nanosleep",   "clock_nanosleep"};
  if (function.kind != CodeKind::user) return true;
  return starts_any(function.module, kModules) || starts_any(bare_name(function.name), kNames);
}

// Functions whose CPU time is the price of waiting, not work.
bool is_waiting_call(const Function& function) {
  static constexpr std::array<std::string_view, 26> kCalls{"pthread_cond_",
                                                           "pthread_mutex_",
                                                           "epoll_wait",
                                                           "epoll_pwait",
                                                           "poll",
                                                           "ppoll",
                                                           "select",
                                                           "recv",
                                                           "recvfrom",
                                                           "recvmsg",
                                                           "read",
                                                           "accept",
                                                           "accept4",
                                                           "sem_wait",
                                                           "futex",
                                                           "lll_lock",
                                                           "nanosleep",
                                                           "clock_nanosleep",
                                                           "std::condition_variable::wait",
                                                           "std::mutex::",
                                                           "std::unique_lock",
                                                           "std::lock_guard",
                                                           "libc_read",
                                                           "libc_recv",
                                                           "libc_accept",
                                                           "new_sem_wait"};
  std::string_view name = normal_name(function.name);
  for (std::string_view call : kCalls) {
    bool prefix = call.ends_with('_') || call.ends_with(':') || call.starts_with("std::") ||
                  call.starts_with("libc_") || call == "futex" || call == "lll_lock";
    if (prefix ? name.starts_with(call) : name == call) return true;
  }
  return false;
}

}  // namespace

bool can_be_idle(BlockKind kind) {
  using enum BlockKind;
  return kind == poll || kind == condition || kind == futex || kind == network_receive ||
         kind == timer || kind == pipe || kind == child || kind == other;
}

IdleRules::IdleRules(const RuleSet& rules, NameSets& sets) {
  for (bool busy : {true, false}) {
    for (const IdleRule& rule : rules.idle) {
      if (rule.busy == busy) rows.push_back({&rule, sets.add(rule.names)});
    }
  }
}

IdleJudge::IdleJudge(const CallTree& tree, const StackFeatures& features, const IdleRules& rules,
                     const run::Contents& run)
    : tree_(tree), features_(features), rules_(rules) {
  std::map<std::pair<uint32_t, std::string>, uint32_t> known;
  for (const model::Thread& thread : run.threads) {
    const std::string& pool = thread.pool.empty() ? thread.name : thread.pool;
    auto [it, added] =
        known.try_emplace({thread.process.value, pool}, static_cast<uint32_t>(groups_.size()));
    if (added) groups_.emplace_back();
    group_of_thread_.push_back(it->second);
  }
  known_.resize(tree.paths().size() * kBlockKindCount);
  looked_up_.resize(known_.size());
  trim();
}

uint32_t IdleJudge::group_of(model::ThreadId thread) const {
  return thread.value < group_of_thread_.size() ? group_of_thread_[thread.value] : 0;
}

void IdleJudge::trim() {
  const auto& paths = tree_.paths();
  std::vector<uint8_t> library(tree_.functions().size()), waits(tree_.functions().size());
  for (size_t f = 0; f < library.size(); ++f) {
    library[f] = is_library(tree_.functions()[f]);
    waits[f] = is_waiting_call(tree_.functions()[f]);
  }
  trimmed_.resize(paths.size());
  machinery_.resize(paths.size());
  depth_.resize(paths.size());
  for (PathIndex path = 1; path < paths.size(); ++path) {
    const CallTree::Path& at = paths[path];
    depth_[path] = depth_[at.parent] + 1;
    trimmed_[path] = library[at.function] ? trimmed_[at.parent] : path;
    machinery_[path] = library[at.function] && (machinery_[at.parent] || waits[at.function]);
  }
}

void IdleJudge::observe_sample(const model::Sample& sample) {
  if (sample.thread.value >= group_of_thread_.size()) return;
  Group& group = groups_[group_of_thread_[sample.thread.value]];
  PathIndex path = tree_.path_of(sample.stack);
  PathSum& sum = group.sums[trimmed_[path]];
  (machinery_[path] ? sum.machinery_ns : sum.cpu_ns) += sample.weight_ns;
  group.cpu_ns += sample.weight_ns;
  all_cpu_ns_ += sample.weight_ns;
  ++group.samples;
}

void IdleJudge::observe_wait(const model::Wait& wait, BlockKind kind) {
  if (wait.thread.value >= group_of_thread_.size() || !can_be_idle(kind)) return;
  if (wait.has(model::WaitFlag::preempted) || wait.has(model::WaitFlag::new_thread)) return;
  Group& group = groups_[group_of_thread_[wait.thread.value]];
  PathSum& sum = group.sums[trimmed_[tree_.path_of(wait.stack)]];
  int64_t ns = std::max<int64_t>(0, wait.duration_ns);
  sum.waiting_ns += ns;
  ++sum.waits;
  group.waiting_ns += ns;
}

void IdleJudge::decide() {
  for (uint32_t group = 0; group < groups_.size(); ++group) decide_group(group);
}

void IdleJudge::decide_group(uint32_t index) {
  Group& group = groups_[index];
  // The pool's work at and below every frame of its own.
  std::unordered_map<PathIndex, int64_t> work;
  int64_t all_work = 0;
  for (const auto& [path, sum] : group.sums) {
    all_work += sum.cpu_ns;
    for (PathIndex at = path; at != 0; at = tree_.paths()[at].parent) work[at] += sum.cpu_ns;
  }
  struct Candidate {
    PathIndex path;
    PathIndex fork = 0;    // deepest frame above the wait that does most of the work
    PathIndex branch = 0;  // the next frame towards the wait; 0: the fork itself waits
    int64_t waiting_ns = 0;
    int64_t own_work = 0;  // of the branch
  };
  bool can_place = group.samples >= kEnoughSamples && all_work > 0;
  auto most = static_cast<int64_t>(kMostWork * static_cast<double>(all_work));
  std::vector<Candidate> candidates;
  for (const auto& [path, sum] : group.sums) {
    if (sum.waits == 0) continue;
    Candidate candidate{path, path, 0, sum.waiting_ns, 0};
    while (can_place && candidate.fork != 0 && work[candidate.fork] < most) {
      candidate.branch = candidate.fork;
      candidate.fork = tree_.paths()[candidate.fork].parent;
    }
    if (candidate.branch != 0) candidate.own_work = work[candidate.branch];
    candidates.push_back(candidate);
  }
  uint32_t top = UINT32_MAX;
  for (const Candidate& c : candidates) {
    bool notable =
        static_cast<double>(c.waiting_ns) >= 0.001 * static_cast<double>(group.waiting_ns);
    if (notable) top = std::min(top, depth_[c.fork]);
  }
  // A pool that does work and sleeps does so between parts of it; one that does none keeps house.
  bool serves = group.cpu_ns > 0 && static_cast<double>(group.cpu_ns) >=
                                        kServingShare * static_cast<double>(all_cpu_ns_);
  for (const Candidate& c : candidates) {
    bool idle = false;
    if (can_place) {
      bool at_top = depth_[c.fork] <= top;
      bool only_waits =
          static_cast<double>(c.own_work) < kWorkShare * static_cast<double>(all_work);
      idle = at_top && only_waits;
    } else {
      idle =
          static_cast<double>(c.waiting_ns) >= kDominates * static_cast<double>(group.waiting_ns);
    }
    shaped_[uint64_t{index} << 32 | c.path] = idle;
    if (serves) serving_.insert(index);
  }
}

IdleJudge::Known IdleJudge::by_rules(PathIndex path, BlockKind kind) const {
  size_t slot = size_t{path} * kBlockKindCount + static_cast<size_t>(kind);
  if (looked_up_[slot]) return known_[slot];
  looked_up_[slot] = 1;
  for (const IdleRules::Row& row : rules_.rows) {
    if (!features_.path_has(path, row.set)) continue;
    const std::vector<BlockKind>& kinds = row.rule->kinds;
    bool fits = kinds.empty() ? can_be_idle(kind)
                              : std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    if (!fits) continue;
    if (row.rule->busy) return known_[slot] = Known::busy;
    uint32_t user = 0;
    for (PathIndex at = path; at != 0 && user <= row.rule->within; at = tree_.paths()[at].parent) {
      FunctionIndex function = tree_.paths()[at].function;
      if (features_.function_has(function, row.set)) return known_[slot] = Known::idle;
      if (tree_.functions()[function].kind == CodeKind::user) ++user;
    }
  }
  return known_[slot];
}

bool IdleJudge::idle(const model::Wait& wait, BlockKind kind) const {
  PathIndex path = tree_.path_of(wait.stack);
  if (path == 0) return false;
  Known known = by_rules(path, kind);
  if (known != Known::unsure) return known == Known::idle;
  if (!can_be_idle(kind)) return false;
  if (kind == BlockKind::timer && serving_.contains(group_of(wait.thread))) return false;
  auto it = shaped_.find(uint64_t{group_of(wait.thread)} << 32 | trimmed_[path]);
  return it != shaped_.end() && it->second;
}

}  // namespace assay::analysis
