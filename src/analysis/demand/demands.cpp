#include "analysis/demand/demands.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "analysis/verdict/vitals.h"

namespace assay::analysis {
namespace {

constexpr double kLeastWaited = 0.02;  // of the window: a lock that is waited for less is no resource
constexpr double kLeastDelay = 0.01;   // threads that wait, on average
constexpr double kNearlyAll = 0.85;    // of its capacity: a resource that limits
constexpr double kHeld = 0.9;          // of its threads' time: a pool that all work queues for
constexpr double kEnough = 64;         // clients, where nothing says how many there are

double seconds(int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

// Requests a second; else how often a thread of the pools that do the work got something to do.
double units_per_s(const Measured& run, const Vitals& v, const std::set<std::string>& serving,
                   WorkUnit& unit) {
  if (v.requests_per_s && *v.requests_per_s > 0) {
    unit = WorkUnit::request;
    return *v.requests_per_s;
  }
  unit = WorkUnit::wakeup;
  uint64_t wakeups = 0;
  for (const ThreadTime& thread : run.threads) {
    if (serving.contains(thread.pool)) wakeups += thread.idle_waits;
  }
  return static_cast<double>(std::max<uint64_t>(1, wakeups)) / seconds(run.window_ns);
}

PoolPlace place_of(const PoolDemand& pool, double comes_per_s, double units_per_s) {
  constexpr double kSeldom = 0.02, kMostly = 0.8;
  if (comes_per_s < kSeldom * units_per_s) return PoolPlace::apart;
  double for_data_s = 0;
  for (const BlockKindRow& row : block_kinds()) {
    if (resource_of(row.kind) == ResourceKind::downstream)
      for_data_s += pool.blocked_s[static_cast<size_t>(row.kind)];
  }
  return for_data_s < kMostly * pool.own_s() ? PoolPlace::queue : PoolPlace::beside;
}

// Of several pools, work comes in at the one with the most threads.
double threads_at_entry(const std::vector<PoolDemand>& pools) {
  double most = 0;
  for (const PoolDemand& pool : pools) most = std::max(most, pool.threads);
  return most;
}

std::vector<PoolDemand> pools_of(const Measured& run, const std::set<std::string>& serving,
                                 double units) {
  std::map<std::string, TimeSplit> times;
  std::map<std::string, uint64_t> waits;
  for (const ThreadTime& thread : run.threads) {
    if (!serving.contains(thread.pool)) continue;
    times[thread.pool].add(thread.time);
    waits[thread.pool] += thread.waits;
  }
  std::vector<PoolDemand> pools;
  for (const auto& [name, time] : times) {
    PoolDemand pool;
    pool.pool = name;
    pool.threads = seconds(time.wall_ns) / seconds(run.window_ns);
    if (time.wall_ns > 0)
      pool.held_share = 1 - static_cast<double>(time.idle_ns) / static_cast<double>(time.wall_ns);
    pool.running_s = seconds(time.running_ns()) / units;
    for (size_t i = 0; i < pool.blocked_s.size(); ++i)
      pool.blocked_s[i] = seconds(time.blocked_ns[i]) / units;
    pools.push_back(std::move(pool));
  }
  double front = threads_at_entry(pools), window_s = seconds(run.window_ns);
  for (PoolDemand& pool : pools) {
    if (pool.threads >= front) continue;  // here work comes in
    pool.place =
        place_of(pool, static_cast<double>(waits[pool.pool]) / window_s, units / window_s);
  }
  return pools;
}

// A pool whose every thread is taken lets no more units in than it has threads.
double let_in(const std::vector<PoolDemand>& pools, double in_flight) {
  double front = threads_at_entry(pools);
  for (const PoolDemand& pool : pools) {
    if (pool.threads >= front && pool.held_share < kHeld) return in_flight;
  }
  return front > 0 ? std::clamp(in_flight, 1.0, std::max(1.0, front)) : in_flight;
}

double in_flight_of(const Vitals& v, const std::vector<PoolDemand>& pools, bool& known) {
  known = v.concurrency && *v.concurrency >= 1;
  double clients = known ? *v.concurrency : v.inbound.value_or(0);
  if (clients < 1) clients = kEnough;
  return let_in(pools, clients);
}

void add_cpus(const Vitals& v, Demands& d) {
  double own = v.cpus_used.value_or(0), host = v.host_cpus.value_or(0);
  // What only spins for a device needs no CPU.
  d.own_cpu_s = own * (1 - v.accelerator_cpu.value_or(0)) / d.units_per_s;
  d.kernel_share = v.kernel_cpu.value_or(0);
  d.cpus = v.usable_cpus.value_or(host);
  bool apart = v.bound.value_or(0) > 0 || host <= 0;  // it has CPUs of its own
  if (apart) return;
  double strangers = std::min(host, v.stranger_cpus.value_or(0));
  double busy = v.host_busy.value_or(0) * host - strangers;
  double others = std::clamp(busy - own, 0.0, host);
  // Strangers keep what they use, but a scheduler that is fair gives the target a half if it asks.
  d.cpus = std::max({own + others, host - strangers, host / 2});
  d.other_cpu_s = others / d.units_per_s;
}

Resource make(ResourceKind kind, std::string name, double servers, double demand_s, double busy,
              double waiting) {
  return {kind, std::move(name), servers, demand_s, busy, waiting, false};
}

// A device does one piece of work after the other; how many threads wait for it, asleep or spinning.
void add_devices(const Measured& run, const Vitals& v, Demands& d) {
  double waiting = v.cpus_used.value_or(0) * v.accelerator_cpu.value_or(0);
  for (const PoolDemand& pool : d.pools)
    waiting += pool.blocked_s[static_cast<size_t>(BlockKind::accelerator)] * d.units_per_s;
  for (const AcceleratorUse& device : run.accelerators) {
    if (!device.about.used_by_target || !device.busy) continue;
    d.resources.push_back(make(ResourceKind::accelerator, device.name(), 1,
                               *device.busy / d.units_per_s, *device.busy, waiting));
  }
}

void add_queues(const Demands& d, std::vector<Resource>& all) {
  double cpu_s = d.own_cpu_s + d.other_cpu_s;
  if (d.cpus > 0)
    all.push_back(make(ResourceKind::cpus, std::string(describe(ResourceKind::cpus).name), d.cpus,
                       cpu_s, std::min(1.0, cpu_s * d.units_per_s / d.cpus),
                       d.runqueue_s * d.units_per_s));
  for (const PoolDemand& pool : d.pools) {
    if (pool.threads <= 0 || pool.place != PoolPlace::queue) continue;
    all.push_back(make(ResourceKind::threads, pool.pool, pool.threads, pool.own_s(),
                       std::min(1.0, pool.own_s() * d.units_per_s / pool.threads), 0));
  }
  for (const LockDemand& lock : d.locks) {
    if (lock.held_s * d.units_per_s < kLeastWaited) continue;
    all.push_back(make(ResourceKind::lock, lock.name, 1, lock.held_s,
                       std::min(1.0, lock.held_s * d.units_per_s), lock.waiters));
  }
  // Threads that wait for a full device are as busy as it is, or more.
  auto rank = [](const Resource& one) {
    bool full = one.kind == ResourceKind::accelerator && one.busy_share >= kNearlyAll;
    return std::pair(full, one.busy_share);
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Resource& a, const Resource& b) { return rank(a) > rank(b); });
  if (all.empty() || all[0].busy_share < kNearlyAll) return;
  // A thread that sleeps most of its time may do so beside the work.
  const PoolDemand* pool = nullptr;
  for (const PoolDemand& one : d.pools) {
    if (all[0].kind == ResourceKind::threads && one.pool == all[0].name) pool = &one;
  }
  auto slept_s = pool ? pool->blocked_s[static_cast<size_t>(BlockKind::timer)] : 0;
  all[0].limits = !pool || slept_s < pool->own_s() / 2;
}

void add_delays(const Demands& d, std::vector<Resource>& all) {
  std::array<double, kResourceKinds> demand_s{};
  for (const PoolDemand& pool : d.pools) {
    if (pool.place == PoolPlace::apart) continue;
    for (const BlockKindRow& row : block_kinds()) {
      auto kind = resource_of(row.kind);
      if (!kind || *kind == ResourceKind::lock) continue;
      demand_s[static_cast<size_t>(*kind)] += pool.blocked_s[static_cast<size_t>(row.kind)];
    }
  }
  std::vector<Resource> delays;
  bool device_known = std::ranges::any_of(
      all, [](const Resource& one) { return one.kind == ResourceKind::accelerator; });
  for (const ResourceKindRow& row : kResourceKindRows) {
    if (row.kind == ResourceKind::accelerator && device_known) continue;
    double each_s = demand_s[static_cast<size_t>(row.kind)], many = each_s * d.units_per_s;
    if (many >= kLeastDelay)
      delays.push_back(make(row.kind, std::string(row.name), 0, each_s, many, many));
  }
  std::stable_sort(delays.begin(), delays.end(), [](const Resource& a, const Resource& b) {
    return a.demand_s > b.demand_s;
  });
  all.insert(all.end(), delays.begin(), delays.end());
}

}  // namespace

double PoolDemand::own_s() const {
  double sum = running_s;
  for (const BlockKindRow& row : block_kinds()) {
    auto kind = resource_of(row.kind);
    if (kind && *kind != ResourceKind::lock) sum += blocked_s[static_cast<size_t>(row.kind)];
  }
  return sum;
}

Demands demands_of(const Measured& run, const Vitals& v) {
  Demands d;
  std::set<std::string> serving = serving_pools(run);
  if (run.window_ns <= 0 || serving.empty() || is_of_counts(run.run_kind)) return d;
  d.units_per_s = units_per_s(run, v, serving, d.unit);
  double units = d.units_per_s * seconds(run.window_ns);
  d.pools = pools_of(run, serving, units);
  d.in_flight = in_flight_of(v, d.pools, d.in_flight_known);
  add_cpus(v, d);
  TimeSplit time = serving_time(run);
  d.runqueue_s = seconds(time.runqueue_ns) / units;
  d.busy_s = seconds(time.busy_ns()) / units;
  for (const LockSummary& lock : run.locks) {
    d.locks.push_back({lock.name, lock.busy_share, lock.waited_share / d.units_per_s,
                       seconds(lock.total_ns) / units, lock.waited_share * lock.mean_waiters});
  }
  add_devices(run, v, d);
  add_queues(d, d.resources);
  add_delays(d, d.resources);
  return d;
}

}  // namespace assay::analysis
