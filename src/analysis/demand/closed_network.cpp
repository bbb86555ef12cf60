#include "analysis/demand/closed_network.h"

#include <algorithm>
#include <cmath>

namespace assay::analysis {
namespace {

constexpr int kMostRounds = 500;
constexpr double kCloseEnough = 1e-6;

// What a customer finds before it, as the queue of a network with one customer less. No more can
// wait than there are beyond the servers.
double found(const Station& station, double customers, double queue) {
  double beyond = std::max(0.0, customers - station.servers);
  return std::min(beyond, (customers - 1) / customers * queue);
}

// How often all servers are busy when somebody comes: sooner or later one of many is free
// (Sakasegawa's approximation). 1 for a single server.
double none_free(const Station& station, double per_s) {
  double busy = std::min(1.0, per_s * station.demand_s / station.servers);
  return std::pow(busy, std::sqrt(2 * (std::max(1.0, station.servers) + 1)) - 2);
}

}  // namespace

double solve(const ClosedNetwork& network) {
  const double customers = std::max(1.0, network.customers);
  std::vector<double> queue(network.stations.size(),
                            customers / static_cast<double>(network.stations.size() + 1));
  double per_s = 0;
  for (int round = 0; round < kMostRounds; ++round) {
    double cycle_s = network.pause_s;
    std::vector<double> in_queue_s(queue.size());
    for (size_t i = 0; i < queue.size(); ++i) {
      const Station& station = network.stations[i];
      if (station.servers <= 0) {
        cycle_s += station.demand_s;
        continue;
      }
      double each_s = station.demand_s / station.servers;
      double wait_s = each_s * found(station, customers, queue[i]) * (round == 0 ? 1 : none_free(station, per_s));
      in_queue_s[i] = each_s + wait_s;
      cycle_s += station.queue_only ? wait_s : station.demand_s + wait_s;
    }
    if (cycle_s <= 0) return 0;
    double next = customers / cycle_s, moved = 0;
    for (size_t i = 0; i < queue.size(); ++i) {
      double length = std::min(customers, next * in_queue_s[i]);
      moved = std::max(moved, std::abs(length - queue[i]));
      queue[i] = (queue[i] + length) / 2;  // halfway: full steps may swing for ever
    }
    per_s = round == 0 ? next : (per_s + next) / 2;
    if (moved < kCloseEnough * customers) break;
  }
  for (const Station& station : network.stations) {  // the steps stop a little beside it
    if (station.servers > 0 && station.demand_s > 0)
      per_s = std::min(per_s, station.servers / station.demand_s);
  }
  return per_s;
}

}  // namespace assay::analysis
