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

// A wait this long for an answer is no wait for an answer: no request was sent.
constexpr int64_t kKeptAliveNs = kNsPerSecond;
// Connections are only kept open where nearly all of the waiting is as long.
constexpr double kNearlyAll = 0.9;
constexpr double kServingShare = 0.03;  // of the target's CPU time
// A pool that only sleeps takes part in requests when it does this much of the target's work, or
// wakes others this often per sleep.
constexpr double kSleeperServes = 0.2;
constexpr double kSleeperHandsOn = 0.1;
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

// A connection that was closed before anybody looked who had opened it.
bool is_of_unknown_peer(model::FdKind kind) {
  return kind == model::FdKind::none || kind == model::FdKind::socket_stream;
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
      groups_.back().process = thread.process.value;
    }
    group_of_thread_.push_back(it->second);
  }
  known_.resize(tree.paths().size() * kBlockKindCount);
  looked_up_.resize(known_.size());
  unix_.resize(run.processes.size());
  look_at_sockets(run);
  trim();
}

// Sockets are counted while the window is open: a run that has counts has seen the connections.
void IdleJudge::look_at_sockets(const run::Contents& run) {
  bool seen = false, asks = false;
  for (const model::Series& series : run.series) {
    if (series.scope != model::SeriesScope::socket) continue;
    seen = true;
    asks |= series.label.ends_with("outbound");
  }
  clients_only_ = seen && !asks;
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
  entry_.resize(paths.size());
  for (PathIndex path = 1; path < paths.size(); ++path) {
    const CallTree::Path& at = paths[path];
    depth_[path] = depth_[at.parent] + 1;
    entry_[path] = entry_[at.parent] != 0 || library[at.function] ? entry_[at.parent] : path;
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
  Slot& slot = slot_of(index, trimmed_[path]);
  ++slot.all_samples;
  if (machinery_[path]) return;
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
  // A poll without descriptors is a sleep.
  bool sleeps = kind == BlockKind::timer ||
                (kind == BlockKind::poll && wait.syscall != model::kNoSyscall && wait.arg == 0);
  if (sleeps) slot.sleeping_ns += ns;
  ++groups_[index].waits;
  groups_[index].sleeps += sleeps;
  slot.accepted += wait.fd_kind == model::FdKind::socket_accepted;
  if (wait.fd_kind == model::FdKind::socket_connected) {
    slot.answer_ns += ns;
    if (ns >= kKeptAliveNs) slot.long_answer_ns += ns;
  }
  if (wait.fd_kind == model::FdKind::socket_unix && groups_[index].process < unix_.size()) {
    unix_[groups_[index].process] = 1;
  }
  observe_waker(wait, index, slot);
}

void IdleJudge::observe_waker(const model::Wait& wait, uint32_t group, PoolSite& site) {
  wakers_known_ |= wait.has(model::WaitFlag::runqueue_known);
  if (wait.waker.value >= group_of_thread_.size()) return;
  uint32_t waker = group_of_thread_[wait.waker.value];
  if (waker == group) {
    ++site.by_pool;
    return;
  }
  ++site.by_target;
  ++groups_[waker].wakes;
  // The last use of `site`: a new slot moves the others.
  if (PathIndex path = tree_.path_of(wait.waker_stack); path != 0) {
    ++slot_of(waker, trimmed_[path]).wakes;
  }
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
  for (const Group& group : groups_) most[group.pool] = std::max(most[group.pool], group.cpu_ns);
  for (Group& group : groups_) {
    group.keeps_house =
        static_cast<double>(group.cpu_ns) < kHousekeeping * static_cast<double>(most[group.pool]);
  }
}

void IdleJudge::decide() {
  leave_out_waiting_calls();
  find_housekeepers();
  PoolShape shape(tree_, depth_);
  for (Group& group : groups_) decide_group(group, shape);
}

// Threads of one pool that start in different functions have nothing in common but a name.
void IdleJudge::decide_group(Group& group, PoolShape& shape) {
  PoolShape::Context context{!imported_ || all_cpu_ns_ > 0, !clients_only_};
  std::map<PathIndex, std::vector<PoolSite*>> by_entry;
  for (uint32_t index : group.slots) {
    by_entry[entry_[slots_[index].path]].push_back(&slots_[index]);
  }
  for (const auto& [entry, sites] : by_entry) shape.decide(sites, context);
  // A pool that does work and sleeps does so between parts of it; one that does none keeps house.
  double share =
      all_cpu_ns_ > 0 ? static_cast<double>(group.cpu_ns) / static_cast<double>(all_cpu_ns_) : 0;
  group.serves = group.cpu_ns > 0 && share >= kServingShare;
  group.on_own_clock =
      group.sleeps == group.waits && share < kSleeperServes &&
      static_cast<double>(group.wakes) < kSleeperHandsOn * static_cast<double>(group.waits);
}

const IdleRule* IdleJudge::rule_of(PathIndex path, BlockKind kind) const {
  for (const IdleRules::Row& row : rules_.rows) {
    if (!features_.path_has(path, row.set)) continue;
    const std::vector<BlockKind>& kinds = row.rule->kinds;
    bool fits = kinds.empty() ? describe(kind).can_be_idle
                              : std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    if (!fits) continue;
    if (row.rule->busy) return row.rule;
    uint32_t user = 0;
    for (PathIndex at = path; at != 0 && user <= row.rule->within; at = tree_.paths()[at].parent) {
      FunctionIndex function = tree_.paths()[at].function;
      if (features_.function_has(function, row.set)) return row.rule;
      if (tree_.functions()[function].kind == CodeKind::user) ++user;
    }
  }
  return nullptr;
}

IdleJudge::Known IdleJudge::by_rules(PathIndex path, BlockKind kind) const {
  size_t slot = size_t{path} * kBlockKindCount + static_cast<size_t>(kind);
  if (looked_up_[slot]) return known_[slot];
  looked_up_[slot] = 1;
  const IdleRule* rule = rule_of(path, kind);
  return known_[slot] = !rule ? Known::unsure : rule->busy ? Known::busy : Known::idle;
}

// What comes from outside can only come from clients where there is nobody else.
bool IdleJudge::from_clients_only(const model::Wait& wait, BlockKind kind,
                                  const PoolSite& site) const {
  bool of_sockets = kind == BlockKind::poll ||
                    (kind == BlockKind::network_receive && is_of_unknown_peer(wait.fd_kind));
  if (!of_sockets || !clients_only_ || !wakers_known_) return false;
  uint32_t process = groups_[group_of(wait.thread)].process;
  bool on_machine = process < unix_.size() && unix_[process] != 0;
  return !on_machine && site.ended_outside() && !site.mostly_sleeps();
}

IdleReason IdleJudge::reason(const model::Wait& wait, BlockKind kind) const {
  using enum IdleReason;
  PathIndex path = tree_.path_of(wait.stack);
  if (path == 0) return no_evidence;
  Known known = by_rules(path, kind);
  if (known != Known::unsure) return known == Known::idle ? known_loop : known_call;
  if (!is_candidate(wait, kind)) return never_for_work;
  uint32_t group = group_of(wait.thread);
  const Slot* slot = find(group, trimmed_[path]);
  // A thread that waits on an accepted connection waits for work. A thread that waits for the
  // answer of another server does not, except on a connection that is only kept open.
  if (kind == BlockKind::network_receive) {
    bool unknown = is_of_unknown_peer(wait.fd_kind) && wait.waker == model::Wait::kNoWaker;
    if (wait.fd_kind == model::FdKind::socket_accepted) return client_connection;
    if (unknown && slot && slot->of_clients()) return client_connection;
    bool outside =
        wait.fd_kind == model::FdKind::socket_connected && wait.waker == model::Wait::kNoWaker;
    if (outside) {
      bool kept = slot && static_cast<double>(slot->long_answer_ns) >=
                              kNearlyAll * static_cast<double>(slot->answer_ns);
      return kept ? kept_open : asked_outside;
    }
  }
  if (groups_[group].keeps_house) return housekeeping;
  if (kind == BlockKind::timer) {
    if (groups_[group].on_own_clock) return own_clock;
    if (groups_[group].serves) return sleeps_at_work;
  }
  if (!slot || slot->waits == 0) return no_evidence;
  return from_clients_only(wait, kind, *slot) ? clients_only : slot->reason;
}

}  // namespace assay::analysis
