#include "analysis/time/idle_judge.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "analysis/interval.h"
#include "model/time/wait_pieces.h"
#include "run/run_kind.h"

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
// Waits below this share of a pool's say nothing of where its loop is.
constexpr double kNotable = 0.001;
// A wait this long for an answer is no wait for an answer: no request was sent.
constexpr int64_t kKeptAliveNs = kNsPerSecond;
constexpr double kServingShare = 0.03;  // of the target's CPU time
// Of the CPU time of the busiest process of the same pool.
constexpr double kHousekeeping = 0.02;

bool starts_any(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Libraries that wait on behalf of their callers.
bool waits_for_callers(const Function& function) {
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

IdleRules::IdleRules(const RuleSet& rules, NameSets& sets) {
  for (bool busy : {true, false}) {
    for (const IdleRule& rule : rules.idle) {
      if (rule.busy == busy) rows.push_back({&rule, sets.add(rule.names)});
    }
  }
}

IdleJudge::IdleJudge(const CallTree& tree, const StackFeatures& features, const IdleRules& rules,
                     const run::Contents& run)
    : tree_(tree),
      features_(features),
      rules_(rules),
      imported_(run::is_imported(run::run_kind(run))) {
  std::map<std::pair<uint32_t, std::string>, uint32_t> known;
  std::map<std::string, uint32_t> pools;
  for (const model::Thread& thread : run.threads) {
    const std::string& pool = thread.pool.empty() ? thread.name : thread.pool;
    auto [it, added] =
        known.try_emplace({thread.process.value, pool}, static_cast<uint32_t>(groups_.size()));
    if (added) {
      uint32_t number = pools.try_emplace(pool, static_cast<uint32_t>(pools.size())).first->second;
      groups_.emplace_back().pool = number;
    }
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
    library[f] = waits_for_callers(tree_.functions()[f]);
    waits[f] = is_waiting_call(tree_.functions()[f]);
  }
  trimmed_.resize(paths.size());
  first_slot_.assign(paths.size(), kNoSlot);
  machinery_.resize(paths.size());
  call_.resize(paths.size());
  waited_in_.resize(paths.size());
  depth_.resize(paths.size());
  for (PathIndex path = 1; path < paths.size(); ++path) {
    const CallTree::Path& at = paths[path];
    depth_[path] = depth_[at.parent] + 1;
    trimmed_[path] = library[at.function] ? trimmed_[at.parent] : path;
    machinery_[path] = library[at.function] && (machinery_[at.parent] || waits[at.function]);
    bool user = tree_.functions()[at.function].kind == CodeKind::user;
    call_[path] = !user ? call_[at.parent] : library[at.function] ? path : 0;
  }
}

IdleJudge::Slot& IdleJudge::slot_of(uint32_t group, PathIndex trimmed) {
  uint32_t* link = &first_slot_[trimmed];
  while (*link != kNoSlot) {
    if (slots_[*link].group == group) return slots_[*link];
    link = &slots_[*link].next;
  }
  auto index = static_cast<uint32_t>(slots_.size());
  *link = index;  // before the push, which moves what it points into
  groups_[group].slots.push_back(index);
  Slot& slot = slots_.emplace_back();
  slot.group = group;
  slot.next = kNoSlot;
  slot.path = trimmed;
  return slot;
}

const IdleJudge::Slot* IdleJudge::find(uint32_t group, PathIndex trimmed) const {
  for (uint32_t at = first_slot_[trimmed]; at != kNoSlot; at = slots_[at].next) {
    if (slots_[at].group == group) return &slots_[at];
  }
  return nullptr;
}

void IdleJudge::observe_sample(const model::Sample& sample) {
  if (sample.thread.value >= group_of_thread_.size()) return;
  uint32_t index = group_of_thread_[sample.thread.value];
  Group& group = groups_[index];
  PathIndex path = tree_.path_of(sample.stack);
  group.cpu_ns += sample.weight_ns;
  all_cpu_ns_ += sample.weight_ns;
  ++group.samples;
  if (machinery_[path]) return;
  Slot& slot = slot_of(index, trimmed_[path]);
  slot.cpu_ns += sample.weight_ns;
  ++slot.samples;
  if (call_[path] == 0) return;
  auto number = static_cast<uint64_t>(&slot - slots_.data());
  CallCpu& call = call_cpu_[number << 32 | call_[path]];
  call.ns += sample.weight_ns;
  ++call.samples;
}

// Of waits of no known kind only those that the kernel tells of (for a signal, at a terminal): a
// profile's stack that says nothing of its wait may be any, a lock's above all.
bool IdleJudge::is_candidate(const model::Wait& wait, BlockKind kind) const {
  if (kind != BlockKind::other) return describe(kind).can_be_idle;
  const Function* leaf = tree_.leaf_of(wait.stack);
  return wait.syscall != model::kNoSyscall || (leaf && leaf->kind == CodeKind::kernel);
}

void IdleJudge::observe_wait(const model::Wait& wait, BlockKind kind) {
  if (wait.thread.value >= group_of_thread_.size() || !is_candidate(wait, kind)) return;
  if (model::waits_for_cpu_only(wait)) return;
  uint32_t index = group_of_thread_[wait.thread.value];
  PathIndex path = tree_.path_of(wait.stack);
  waited_in_[call_[path]] = 1;
  Slot& slot = slot_of(index, trimmed_[path]);
  int64_t ns = std::max<int64_t>(0, wait.duration_ns);
  slot.waiting_ns += ns;
  ++slot.waits;
  groups_[index].waiting_ns += ns;
}

// What a call costs that sleeps is the price of waiting, whatever it is called: the way into the
// kernel and out of it again has no name that would tell.
void IdleJudge::leave_out_waiting_calls() {
  for (const auto& [key, cpu] : call_cpu_) {
    if (!waited_in_[static_cast<PathIndex>(key)]) continue;
    Slot& slot = slots_[key >> 32];
    slot.cpu_ns -= cpu.ns;
    slot.samples -= cpu.samples;
  }
  call_cpu_.clear();
}

void IdleJudge::find_housekeepers() {
  std::unordered_map<uint32_t, int64_t> most;  // CPU time of a pool's busiest group
  for (const Group& group : groups_)
    most[group.pool] = std::max(most[group.pool], group.cpu_ns);
  for (Group& group : groups_) {
    group.keeps_house = static_cast<double>(group.cpu_ns) <
                        kHousekeeping * static_cast<double>(most[group.pool]);
  }
}

void IdleJudge::decide() {
  leave_out_waiting_calls();
  find_housekeepers();
  work_.assign(tree_.paths().size(), 0);
  for (Group& group : groups_) decide_group(group);
}

void IdleJudge::decide_group(Group& group) {
  const auto& paths = tree_.paths();
  // The pool's work at and below every frame.
  int64_t all_work = 0;
  uint64_t work_samples = 0;
  for (uint32_t index : group.slots) {
    const Slot& slot = slots_[index];
    all_work += slot.cpu_ns;
    work_samples += slot.samples;
    if (slot.cpu_ns == 0) continue;
    for (PathIndex at = slot.path; at != 0; at = paths[at].parent) work_[at] += slot.cpu_ns;
  }
  struct Candidate {
    Slot* slot;
    PathIndex fork = 0;    // deepest frame above the wait that does most of the work
    int64_t own_work = 0;  // of the branch that leads from there to the wait
  };
  bool can_place = group.samples >= kEnoughSamples && all_work > 0;
  auto most = static_cast<int64_t>(kMostWork * static_cast<double>(all_work));
  std::vector<Candidate> candidates;
  uint32_t top = UINT32_MAX;
  for (uint32_t index : group.slots) {
    Slot& slot = slots_[index];
    if (slot.waits == 0) continue;
    Candidate candidate{&slot, slot.path, 0};
    PathIndex branch = 0;
    while (can_place && candidate.fork != 0 && work_[candidate.fork] < most) {
      branch = candidate.fork;
      candidate.fork = paths[candidate.fork].parent;
    }
    if (branch != 0) candidate.own_work = work_[branch];
    bool notable =
        static_cast<double>(slot.waiting_ns) >= kNotable * static_cast<double>(group.waiting_ns);
    if (notable) top = std::min(top, depth_[candidate.fork]);
    candidates.push_back(candidate);
  }
  for (const Candidate& c : candidates) {
    if (can_place) {
      // A sample or two of few are no work: the share's lower bound decides.
      double share = static_cast<double>(c.own_work) / static_cast<double>(all_work);
      bool only_waits = wilson(share, static_cast<double>(work_samples)).low < kWorkShare;
      c.slot->idle = depth_[c.fork] <= top && only_waits;
    } else if (!imported_ || all_cpu_ns_ > 0) {
      c.slot->idle = static_cast<double>(c.slot->waiting_ns) >=
                     kDominates * static_cast<double>(group.waiting_ns);
    }
  }
  // A pool that does work and sleeps does so between parts of it; one that does none keeps house.
  group.serves = group.cpu_ns > 0 && static_cast<double>(group.cpu_ns) >=
                                         kServingShare * static_cast<double>(all_cpu_ns_);
  for (uint32_t index : group.slots) {
    for (PathIndex at = slots_[index].path; at != 0 && work_[at] != 0; at = paths[at].parent) {
      work_[at] = 0;
    }
  }
}

IdleJudge::Known IdleJudge::by_rules(PathIndex path, BlockKind kind) const {
  size_t slot = size_t{path} * kBlockKindCount + static_cast<size_t>(kind);
  if (looked_up_[slot]) return known_[slot];
  looked_up_[slot] = 1;
  for (const IdleRules::Row& row : rules_.rows) {
    if (!features_.path_has(path, row.set)) continue;
    const std::vector<BlockKind>& kinds = row.rule->kinds;
    bool fits = kinds.empty() ? describe(kind).can_be_idle
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
  if (!is_candidate(wait, kind)) return false;
  // A thread that waits on an accepted connection waits for work. A thread that waits for the
  // answer of another server does not, except on a connection that is only kept open.
  if (kind == BlockKind::network_receive) {
    if (wait.fd_kind == model::FdKind::socket_accepted) return true;
    bool asked_outside = wait.fd_kind == model::FdKind::socket_connected &&
                         wait.waker == model::Wait::kNoWaker && wait.duration_ns < kKeptAliveNs;
    if (asked_outside) return false;
  }
  uint32_t group = group_of(wait.thread);
  if (groups_[group].keeps_house) return true;
  if (kind == BlockKind::timer && groups_[group].serves) return false;
  const Slot* slot = find(group, trimmed_[path]);
  return slot && slot->idle;
}

}  // namespace assay::analysis
