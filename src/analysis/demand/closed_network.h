// solve(): throughput of a closed queueing network, by approximate mean value analysis.
//
// A number of customers go round: each takes a pause and then asks every station for its demand.
// The recursion is Schweitzer's; a station of several servers is divided into a queue and a delay
// (Seidmann), and who finds a server free does not wait. Customers may be a fraction. Pure; never fails: a network without any demand and
// without a pause has the throughput 0.
#pragma once

#include <vector>

namespace assay::analysis {

struct Station {
  double demand_s = 0;  // for each round
  double servers = 0;   // 0: a delay, for which nobody queues
  // The time in service is part of other stations' demands; only the wait for a server counts.
  bool queue_only = false;
};

struct ClosedNetwork {
  double customers = 1;
  double pause_s = 0;
  std::vector<Station> stations;
};

// Rounds a second.
double solve(const ClosedNetwork& network);

}  // namespace assay::analysis
