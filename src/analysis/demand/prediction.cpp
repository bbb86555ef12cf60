#include "analysis/demand/prediction.h"

#include <algorithm>
#include <cmath>

#include "analysis/demand/closed_network.h"

namespace assay::analysis {
namespace {

constexpr double kLeastFit = 0.5;  // of the measured throughput
// A real server comes in bursts and reaches less than the model; a smaller difference says nothing
// about the clients.
constexpr double kReached = 0.85;
// Below this share of the model's throughput without pauses, the clients must be pausing.
constexpr double kFarFrom = 0.5;
constexpr int kHalvings = 24;
constexpr int kBatchingRounds = 8;

double left(double share) {
  return 1 - std::clamp(share, 0.0, 1.0);
}

void take_cpu(const Removal& removal, Demands& d) {
  double gone_s = d.own_cpu_s * std::clamp(removal.cpu_share, 0.0, 1.0);
  if (removal.cpu_of_pool && *removal.cpu_of_pool < d.pools.size()) {
    double& of_pool = d.pools[*removal.cpu_of_pool].running_s;
    of_pool = std::max(0.0, of_pool - gone_s);
  } else {
    for (PoolDemand& pool : d.pools) pool.running_s *= left(removal.cpu_share);
  }
  d.own_cpu_s -= gone_s;
}

void take_waits(const Removal& removal, Demands& d) {
  if (!removal.wait) return;
  for (PoolDemand& pool : d.pools)
    pool.blocked_s[static_cast<size_t>(*removal.wait)] *= left(removal.wait_share);
  if (*removal.wait != BlockKind::lock) return;
  for (size_t i = 0; i < d.locks.size(); ++i) {
    if (removal.lock && *removal.lock != i) continue;
    d.locks[i].held_s *= left(removal.wait_share);
    d.locks[i].waited_s *= left(removal.wait_share);
  }
}

// What is done under a lock is part of its holder's demands, so only the queue for it counts. A lock
// that is free part of the time can still make many threads wait, when each hold is long. A mean
// hold time cannot predict such a queue: then the wait that was measured is used.
Station station_of(const LockDemand& lock, double units_per_s) {
  constexpr double kAlways = 0.85;
  if (lock.held_s * units_per_s >= kAlways) return {lock.held_s, 1, true};
  return {lock.waited_s, 0, false};
}

ClosedNetwork network_of(const Demands& d, double pause_s) {
  ClosedNetwork network{d.in_flight, pause_s, {}};
  network.stations.push_back({d.own_cpu_s + d.other_cpu_s, d.cpus, false});
  for (const PoolDemand& pool : d.pools) {
    if (pool.place == PoolPlace::apart) continue;
    if (pool.place == PoolPlace::queue)
      network.stations.push_back({pool.own_s(), pool.threads, true});
    network.stations.push_back({pool.own_s() - pool.running_s, 0, false});
  }
  for (const LockDemand& lock : d.locks) network.stations.push_back(station_of(lock, d.units_per_s));
  return network;
}

// With so much of the kernel's time for each unit.
Demands with_kernel_time(Demands d, double part) {
  double of_cpu = 1 - d.kernel_share * (1 - part);
  d.own_cpu_s *= of_cpu;
  d.other_cpu_s *= of_cpu;
  for (PoolDemand& pool : d.pools) pool.running_s *= of_cpu;
  return d;
}

// The clients' own time, by which the model has about the measured throughput; 0 where it has less
// without any.
double pause_that_fits(const Demands& d) {
  double of_model = d.units_per_s / std::max(1e-9, solve(network_of(d, 0)));
  double near = std::clamp((of_model - kFarFrom) / (kReached - kFarFrom), 0.0, 1.0);
  double wanted = d.units_per_s / (1 - near * (1 - kReached));
  double low = 0, high = d.in_flight / d.units_per_s;
  for (int i = 0; i < kHalvings; ++i) {
    double middle = (low + high) / 2;
    (solve(network_of(d, middle)) > wanted ? low : high) = middle;
  }
  return low;
}

}  // namespace

ServerModel::ServerModel(const Demands& demands) : demands_(demands) {
  if (!demands.known() || demands.cpus <= 0) return;
  pause_s_ = pause_that_fits(demands);
  double before = solve(network_of(demands, pause_s_));
  if (before >= kLeastFit * demands.units_per_s) before_per_s_ = before;
}

std::optional<double> ServerModel::predict(const Removal& removal) const {
  if (before_per_s_ <= 0) return {};
  Demands changed = demands_;
  take_cpu(removal, changed);
  take_waits(removal, changed);
  double after = solve(network_of(changed, pause_s_));
  if (after <= 0) return {};
  for (int i = 0; i < kBatchingRounds; ++i) {
    if (removal.batching <= 0) break;
    double grown = std::max(1.0, after / before_per_s_);
    double kernel = std::pow(grown, -removal.batching);
    after = (after + solve(network_of(with_kernel_time(changed, kernel), pause_s_))) / 2;
  }
  return std::max(0.0, after / before_per_s_ - 1);
}

}  // namespace assay::analysis
