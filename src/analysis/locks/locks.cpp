#include "analysis/locks/locks.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "model/display_name.h"

namespace assay::analysis {
namespace {

constexpr size_t kSitesShown = 4;
constexpr size_t kHoldersShown = 4;
// Waited for less than this share of the window, a lock cannot hold much back.
constexpr double kBriefShare = 0.02;
// A convoy: always more than one waiter, and the lock goes round faster than people hold locks.
constexpr double kConvoyWaiters = 1.5;
constexpr int64_t kConvoyHandOverNs = 200'000;

struct Occupancy {
  int64_t waited_ns = 0;
  uint32_t most = 0;
};

Occupancy occupancy_of(std::vector<std::pair<TimeNs, TimeNs>> intervals) {
  std::vector<std::pair<TimeNs, int>> events;
  events.reserve(intervals.size() * 2);
  for (auto [begin, end] : intervals) {
    events.emplace_back(begin, 1);
    events.emplace_back(end, -1);
  }
  std::sort(events.begin(), events.end());  // ends before beginnings at the same time
  Occupancy result;
  int level = 0;
  TimeNs last = 0;
  for (auto [time, step] : events) {
    if (level > 0) result.waited_ns += time - last;
    last = time;
    level += step;
    result.most = std::max(result.most, static_cast<uint32_t>(std::max(level, 0)));
  }
  return result;
}

LockShape shape_of(const LockSummary& row, int64_t waited_ns) {
  if (row.waited_share < kBriefShare) return LockShape::brief;
  double hand_over =
      static_cast<double>(waited_ns) / static_cast<double>(std::max<uint64_t>(1, row.waits));
  bool convoy = row.mean_waiters >= kConvoyWaiters && hand_over < kConvoyHandOverNs;
  return convoy ? LockShape::convoy : LockShape::contention;
}

// The C library's own lock around its heap is told by the functions that take it.
bool takes_heap_lock(const LockWaiter& waiter) {
  return std::ranges::any_of(waiter.frames, [](const FrameText& frame) {
    const std::string& name = frame.function;
    return name == "malloc" || name == "free" || name.find("_int_free") != name.npos ||
           name.find("arena_get") != name.npos || name.find("lll_lock_wait_private") != name.npos;
  });
}

}  // namespace

LockBuilder::LockBuilder(const CallTree& tree, const IdleJudge& judge, const run::Contents& run)
    : tree_(tree), judge_(judge), run_(run) {}

// Where in a stack a lock that its function identifies is waited for.
LockBuilder::OwnLock LockBuilder::own_lock(PathIndex path) const {
  size_t frames = 0;
  for (PathIndex at = path; at != 0 && frames < kMeaningFrames; at = tree_.paths()[at].parent) {
    const Function& function = tree_.functions()[tree_.paths()[at].function];
    if (function.kind == CodeKind::kernel) continue;
    ++frames;
    const MeaningRow* row = meaning_of(function.name);
    if (row && row->kind == BlockKind::lock && row->identity != LockIdentity::address)
      return {at, row->identity == LockIdentity::function};
  }
  return {};
}

// The nearest caller that has a name; of stripped programs only what they export does.
PathIndex LockBuilder::named_caller(PathIndex path) const {
  PathIndex first = tree_.paths()[path].parent;
  for (PathIndex at = first; at != 0; at = tree_.paths()[at].parent) {
    const Function& function = tree_.functions()[tree_.paths()[at].function];
    if (function.named && !model::is_place_name(function.name)) return at;
  }
  return first;
}

void LockBuilder::add(const model::Wait& wait, BlockKind kind, const PlacedWait& placed) {
  if (kind != BlockKind::lock || placed.blocked_ns <= 0) return;
  if (wait.thread.value >= run_.threads.size()) return;
  uint32_t process = run_.threads[wait.thread.value].process.value;
  PathIndex path = tree_.path_of(wait.stack);
  auto [own, of_all_processes] = own_lock(path);
  PathIndex site = judge_.trimmed(own != 0 ? named_caller(own) : path);
  // Without an address (locks of the kernel) the call site is all there is to tell them apart.
  bool futex = wait.syscall == 202 || wait.syscall == 455 || wait.syscall == 449;
  uint64_t address = futex && own == 0 ? wait.arg : 0;
  uint64_t place = own != 0 ? tree_.paths()[own].function : site;
  uint64_t key = address != 0 ? address : (uint64_t{1} << 63) | place;
  auto [it, added] =
      index_.try_emplace({of_all_processes ? UINT32_MAX : process, key}, locks_.size());
  if (added) {
    Lock& lock = locks_.emplace_back();
    lock.pid = process < run_.processes.size() ? run_.processes[process].pid : 0;
    lock.address = address;
    lock.own = own;
  }
  Lock& lock = locks_[it->second];
  lock.durations.add(placed.blocked_ns);
  lock.intervals.emplace_back(placed.begin_ns, placed.begin_ns + placed.blocked_ns);
  ++lock.waiters[wait.thread.value];
  // The owner is known only sometimes. The thread that woke the waiter held the lock last.
  model::ThreadId holder = wait.owner != model::Wait::kNoOwner ? wait.owner : wait.waker;
  if (holder != model::Wait::kNoWaker) {
    PathIndex where = judge_.trimmed(tree_.path_of(wait.waker_stack));
    ++lock.holders[{holder.value, where}];
  }
  Site& at = lock.sites[site];
  at.ns += placed.blocked_ns;
  ++at.waits;
  if (placed.blocked_ns > at.heaviest_ns) {
    at.heaviest_ns = placed.blocked_ns;
    at.heaviest = wait.stack;
  }
}

// The data symbol at the lock's address; empty for locks inside objects on the heap.
std::string LockBuilder::own_name(pid_t pid, uint64_t address) const {
  for (const model::DataName& data : run_.data_names) {
    bool same_process =
        data.process.value < run_.processes.size() && run_.processes[data.process.value].pid == pid;
    if (same_process && data.address == address) return data.name;
  }
  return "";
}

std::vector<LockWaiter> LockBuilder::waiters_of(const Lock& lock) const {
  std::vector<std::pair<PathIndex, Site>> sites(lock.sites.begin(), lock.sites.end());
  std::stable_sort(sites.begin(), sites.end(),
                   [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  if (sites.size() > kSitesShown) sites.resize(kSitesShown);
  std::vector<LockWaiter> waiters;
  for (const auto& [path, site] : sites) {
    LockWaiter waiter;
    waiter.frames = tree_.texts_of(site.heaviest);
    waiter.total_ns = site.ns;
    waiter.waits = site.waits;
    waiter.function = path == 0 ? std::string_view("[no stack]")
                                : tree_.functions()[tree_.paths()[path].function].name;
    for (const FrameText& frame : waiter.frames) {
      if (frame.function != waiter.function || !waiter.file.empty()) continue;
      waiter.file = frame.file;
      waiter.line = frame.line;
    }
    waiters.push_back(std::move(waiter));
  }
  return waiters;
}

std::vector<LockHolder> LockBuilder::holders_of(const Lock& lock) const {
  std::vector<std::pair<std::pair<uint32_t, PathIndex>, uint64_t>> holders(lock.holders.begin(),
                                                                           lock.holders.end());
  std::stable_sort(holders.begin(), holders.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (holders.size() > kHoldersShown) holders.resize(kHoldersShown);
  std::vector<LockHolder> shown;
  for (const auto& [holder, waits] : holders) {
    auto [thread, path] = holder;
    if (thread >= run_.threads.size()) continue;
    std::string function;
    if (path != 0) function = tree_.functions()[tree_.paths()[path].function].name;
    shown.push_back({run_.threads[thread].name, std::move(function), waits});
  }
  return shown;
}

std::string LockBuilder::name_of(const LockSummary& row, PathIndex lock) const {
  std::string site = row.waiters.empty() ? "[unknown]" : model::short_name(row.waiters[0].function);
  if (row.allocator) return fmt::format("the heap's lock, taken in {}", site);
  if (lock != 0) {
    std::string function(tree_.functions()[tree_.paths()[lock].function].name);
    return fmt::format("lock of {}, taken in {}", model::short_name(function), site);
  }
  std::string own = own_name(row.pid, row.address);
  return own.empty() ? fmt::format("lock taken in {}", site)
                     : fmt::format("lock {}, taken in {}", own, site);
}

LockSummary LockBuilder::summary(const Lock& lock, int64_t window_ns, int64_t busy_ns) const {
  const Durations& d = lock.durations;
  LockSummary row;
  row.pid = lock.pid;
  row.address = lock.address;
  row.waits = d.count();
  row.total_ns = d.sum_ns();
  row.mean_ns = d.mean_ns();
  row.p99_ns = d.quantile_ns(0.99);
  row.max_ns = d.max_ns();
  row.threads = static_cast<uint32_t>(lock.waiters.size());
  Occupancy occupancy = occupancy_of(lock.intervals);
  auto total = static_cast<double>(row.total_ns), waited = static_cast<double>(occupancy.waited_ns);
  row.most_waiters = occupancy.most;
  if (window_ns > 0) row.waited_share = waited / static_cast<double>(window_ns);
  if (waited > 0) row.mean_waiters = total / waited;
  if (busy_ns > 0) row.busy_share = total / static_cast<double>(busy_ns);
  row.shape = shape_of(row, occupancy.waited_ns);
  row.waiters = waiters_of(lock);
  row.allocator = !row.waiters.empty() && takes_heap_lock(row.waiters[0]);
  row.holders = holders_of(lock);
  row.name = name_of(row, lock.own);
  return row;
}

std::vector<LockSummary> LockBuilder::finish(size_t max, int64_t window_ns, int64_t busy_ns) const {
  std::vector<const Lock*> order;
  for (const Lock& lock : locks_) order.push_back(&lock);
  std::stable_sort(order.begin(), order.end(), [](const Lock* a, const Lock* b) {
    return a->durations.sum_ns() > b->durations.sum_ns();
  });
  if (order.size() > max) order.resize(max);
  std::vector<LockSummary> rows;
  for (const Lock* lock : order) rows.push_back(summary(*lock, window_ns, busy_ns));
  return rows;
}

}  // namespace assay::analysis
