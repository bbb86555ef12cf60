#include "analysis/demand/prediction.h"

#include <algorithm>

#include "analysis/demand/closed_network.h"

namespace assay::analysis {
namespace {

constexpr double kLeastFit = 0.5;  // of the measured throughput
// A real server comes in bursts and reaches less than the model; a smaller difference says nothing
// about the clients.
constexpr double kReached = 0.85;
constexpr double kFarFrom = 0.5;  // of the model without pauses: here the clients surely pause
constexpr int kHalvings = 50;

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
    if (!removal.lock || *removal.lock == i) d.locks[i].held_s *= left(removal.wait_share);
  }
}

ClosedNetwork network_of(const Demands& d, double pause_s) {
  ClosedNetwork network{d.in_flight, pause_s, {}};
  network.stations.push_back({d.own_cpu_s + d.other_cpu_s, d.cpus, false});
  for (const PoolDemand& pool : d.pools) {
    network.stations.push_back({pool.own_s(), pool.threads, true});
    network.stations.push_back({pool.own_s() - pool.running_s, 0, false});
  }
  // What is done under a lock is part of its holder's demands.
  for (const LockDemand& lock : d.locks) network.stations.push_back({lock.held_s, 1, true});
  return network;
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

std::optional<double> predict(const Demands& demands, const Removal& removal) {
  if (!demands.known() || demands.cpus <= 0) return {};
  double pause_s = pause_that_fits(demands);
  double before = solve(network_of(demands, pause_s));
  if (before < kLeastFit * demands.units_per_s) return {};
  Demands changed = demands;
  take_cpu(removal, changed);
  take_waits(removal, changed);
  double after = solve(network_of(changed, pause_s));
  if (after <= 0) return {};
  return std::max(0.0, after / before - 1);
}

}  // namespace assay::analysis
