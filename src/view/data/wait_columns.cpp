// wait_columns() and lock_columns(): waits one by one, as distributions.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "analysis/time/durations.h"
#include "view/data/columns.h"
#include "view/queries.h"
#include "view/data/time_walk.h"

namespace assay::view {
namespace {

constexpr size_t kWaitersPerLock = 12;
constexpr size_t kWakersPerLock = 8;

struct Rows {
  std::vector<uint64_t> count, total, p50, p99, max;

  void add(const analysis::Durations& d) {
    count.push_back(d.count());
    total.push_back(static_cast<uint64_t>(d.sum_ns()));
    p50.push_back(static_cast<uint64_t>(d.quantile_ns(0.5)));
    p99.push_back(static_cast<uint64_t>(d.quantile_ns(0.99)));
    max.push_back(static_cast<uint64_t>(d.max_ns()));
  }
  void put(Columns& table) const {
    table.add("count", count);
    table.add("total", total);
    table.add("p50", p50);
    table.add("p99", p99);
    table.add("max", max);
  }
};

struct Lock {
  ThreadState state = 0;
  model::ProcessId process;
  uint64_t address = 0;
  analysis::Durations durations;
  std::unordered_map<NodeIndex, std::pair<int64_t, uint64_t>> waiters;  // time, waits
  std::unordered_map<uint32_t, std::pair<int64_t, uint64_t>> wakers;    // by thread

  void add(const Piece& piece) {
    durations.add(piece.ns());
    auto& waiter = waiters[piece.node];
    waiter.first += piece.ns();
    ++waiter.second;
    if (piece.wait->waker == model::Wait::kNoWaker) return;
    auto& waker = wakers[piece.wait->waker.value];
    waker.first += piece.ns();
    ++waker.second;
  }
};

// Longest first, ties by number: the same run gives the same answer.
template <class Map>
std::vector<std::pair<uint32_t, std::pair<int64_t, uint64_t>>> heaviest(const Map& map,
                                                                        size_t most) {
  std::vector<std::pair<uint32_t, std::pair<int64_t, uint64_t>>> rows(map.begin(), map.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.second.first, a.first) < std::tuple(a.second.first, b.first);
  });
  if (rows.size() > most) rows.resize(most);
  return rows;
}

bool is_lock(ThreadState state) {
  return state == blocked_state(analysis::BlockKind::lock) ||
         state == blocked_state(analysis::BlockKind::futex);
}

std::string lock_table(const std::vector<Lock>& locks, size_t all_locks) {
  Rows rows;
  std::vector<uint32_t> states, processes, waiter_lock, waiter_node, waker_lock, waker_thread;
  std::vector<uint64_t> addresses, waiter_ns, waiter_count, waker_ns, waker_count;
  for (uint32_t i = 0; i < locks.size(); ++i) {
    const Lock& lock = locks[i];
    rows.add(lock.durations);
    states.push_back(lock.state);
    processes.push_back(lock.process.value);
    addresses.push_back(lock.address);
    for (const auto& [node, sum] : heaviest(lock.waiters, kWaitersPerLock)) {
      waiter_lock.push_back(i);
      waiter_node.push_back(node);
      waiter_ns.push_back(static_cast<uint64_t>(sum.first));
      waiter_count.push_back(sum.second);
    }
    for (const auto& [thread, sum] : heaviest(lock.wakers, kWakersPerLock)) {
      waker_lock.push_back(i);
      waker_thread.push_back(thread);
      waker_ns.push_back(static_cast<uint64_t>(sum.first));
      waker_count.push_back(sum.second);
    }
  }
  Columns table("locks");
  table.scalar("all", static_cast<int64_t>(all_locks));
  table.add("state", states);
  table.add("process", processes);
  table.add("address", addresses);
  rows.put(table);
  table.add("waiter_lock", waiter_lock);
  table.add("waiter_node", waiter_node);
  table.add("waiter_ns", waiter_ns);
  table.add("waiter_count", waiter_count);
  table.add("waker_lock", waker_lock);
  table.add("waker_thread", waker_thread);
  table.add("waker_ns", waker_ns);
  table.add("waker_count", waker_count);
  return table.finish();
}

}  // namespace

Result<std::string> wait_columns(RunIndex& run, const Selection& selection, size_t most_rows) {
  std::unordered_map<uint64_t, analysis::Durations> by_path;
  auto status = walk_waits(run, selection, [&](const Piece& piece) {
    if (!piece.wait || !selection.has_node(piece.node)) return;
    by_path[uint64_t{piece.state} << 32 | piece.node].add(piece.ns());
  });
  if (!status) return std::unexpected(status.error());
  std::vector<std::pair<uint64_t, const analysis::Durations*>> order;
  for (const auto& [key, durations] : by_path) order.emplace_back(key, &durations);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.second->sum_ns(), a.first) < std::tuple(a.second->sum_ns(), b.first);
  });
  if (order.size() > most_rows) order.resize(most_rows);
  Rows rows;
  std::vector<uint32_t> states, nodes;
  for (const auto& [key, durations] : order) {
    states.push_back(static_cast<uint32_t>(key >> 32));
    nodes.push_back(static_cast<uint32_t>(key));
    rows.add(*durations);
  }
  Columns table("waits");
  table.scalar("all", static_cast<int64_t>(by_path.size()));
  table.add("state", states);
  table.add("node", nodes);
  rows.put(table);
  return table.finish();
}

Result<std::string> lock_columns(RunIndex& run, const Selection& selection, size_t most_rows) {
  std::map<std::pair<uint32_t, uint64_t>, Lock> by_address;
  auto status = walk_waits(run, selection, [&](const Piece& piece) {
    if (!piece.wait || !is_lock(piece.state) || !selection.has_node(piece.node)) return;
    model::ProcessId process = run.contents().threads[piece.thread.value].process;
    Lock& lock = by_address[{process.value, piece.wait->arg}];
    lock.state = piece.state;
    lock.process = process;
    lock.address = piece.wait->arg;
    lock.add(piece);
  });
  if (!status) return std::unexpected(status.error());
  std::vector<Lock> locks;
  for (auto& [key, lock] : by_address) locks.push_back(std::move(lock));
  std::stable_sort(locks.begin(), locks.end(), [](const Lock& a, const Lock& b) {
    return a.durations.sum_ns() > b.durations.sum_ns();
  });
  size_t all = locks.size();
  if (locks.size() > most_rows) locks.resize(most_rows);
  return lock_table(locks, all);
}

}  // namespace assay::view
