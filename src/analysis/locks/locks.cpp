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

}  // namespace

std::string_view lock_shape_id(LockShape shape) {
  switch (shape) {
    case LockShape::brief:
      return "brief";
    case LockShape::contention:
      return "contention";
    case LockShape::convoy:
      return "convoy";
  }
  return "brief";
}

LockBuilder::LockBuilder(const CallTree& tree, const IdleJudge& judge, const run::Contents& run)
    : tree_(tree), judge_(judge), run_(run) {}

void LockBuilder::add(const model::Wait& wait, BlockKind kind, const PlacedWait& placed) {
  if (kind != BlockKind::lock || placed.blocked_ns <= 0) return;
  if (wait.thread.value >= run_.threads.size()) return;
  uint32_t process = run_.threads[wait.thread.value].process.value;
  PathIndex site = judge_.trimmed(tree_.path_of(wait.stack));
  // Without an address (locks of the kernel) the call site is all there is to tell them apart.
  bool futex = wait.syscall == 202 || wait.syscall == 455 || wait.syscall == 449;
  uint64_t address = futex ? wait.arg : 0;
  uint64_t key = address != 0 ? address : (uint64_t{1} << 63) | site;
  auto [it, added] = index_.try_emplace({process, key}, locks_.size());
  if (added) {
    Lock& lock = locks_.emplace_back();
    lock.pid = process < run_.processes.size() ? run_.processes[process].pid : 0;
    lock.address = address;
  }
  Lock& lock = locks_[it->second];
  lock.durations.add(placed.blocked_ns);
  lock.intervals.emplace_back(placed.begin_ns, placed.begin_ns + placed.blocked_ns);
  ++lock.waiters[wait.thread.value];
  // Who held it is known only sometimes; who let it go held it last.
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
  auto waited = static_cast<double>(occupancy.waited_ns);
  row.most_waiters = occupancy.most;
  if (window_ns > 0) row.waited_share = waited / static_cast<double>(window_ns);
  if (waited > 0) row.mean_waiters = static_cast<double>(row.total_ns) / waited;
  if (busy_ns > 0)
    row.busy_share = static_cast<double>(row.total_ns) / static_cast<double>(busy_ns);
  if (row.waited_share >= kBriefShare) {
    double hand_over = waited / static_cast<double>(std::max<uint64_t>(1, row.waits));
    bool convoy = row.mean_waiters >= kConvoyWaiters && hand_over < kConvoyHandOverNs;
    row.shape = convoy ? LockShape::convoy : LockShape::contention;
  }
  std::vector<std::pair<PathIndex, Site>> sites(lock.sites.begin(), lock.sites.end());
  std::stable_sort(sites.begin(), sites.end(),
                   [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  for (size_t i = 0; i < std::min(kSitesShown, sites.size()); ++i) {
    LockWaiter waiter;
    waiter.frames = tree_.texts_of(sites[i].second.heaviest);
    waiter.total_ns = sites[i].second.ns;
    waiter.waits = sites[i].second.waits;
    std::string_view name = sites[i].first == 0
                                ? std::string_view("[no stack]")
                                : tree_.functions()[tree_.paths()[sites[i].first].function].name;
    waiter.function = name;
    for (const FrameText& frame : waiter.frames) {
      bool heap = frame.function == "malloc" || frame.function == "free" ||
                  frame.function.find("_int_free") != frame.function.npos ||
                  frame.function.find("arena_get") != frame.function.npos ||
                  frame.function.find("lll_lock_wait_private") != frame.function.npos;
      if (i == 0 && heap) row.allocator = true;
      if (frame.function == name && waiter.file.empty()) {
        waiter.file = frame.file;
        waiter.line = frame.line;
      }
    }
    row.waiters.push_back(std::move(waiter));
  }
  std::string site = row.waiters.empty() ? "[unknown]" : model::short_name(row.waiters[0].function);
  std::string own = own_name(lock.pid, lock.address);
  row.name = row.allocator  ? fmt::format("the heap's lock, taken in {}", site)
             : !own.empty() ? fmt::format("lock {}, taken in {}", own, site)
                            : fmt::format("lock taken in {}", site);
  std::vector<std::pair<std::pair<uint32_t, PathIndex>, uint64_t>> holders(lock.holders.begin(),
                                                                           lock.holders.end());
  std::stable_sort(holders.begin(), holders.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (size_t i = 0; i < std::min(kHoldersShown, holders.size()); ++i) {
    auto [thread, path] = holders[i].first;
    if (thread >= run_.threads.size()) continue;
    std::string function;
    if (path != 0) function = tree_.functions()[tree_.paths()[path].function].name;
    row.holders.push_back({run_.threads[thread].name, std::move(function), holders[i].second});
  }
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
