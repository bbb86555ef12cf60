// Demands: what one unit of work takes from each resource, and how busy each resource is.
//
// A unit of work is a request where load was measured, else a wake-up of the pools that do the work.
// The CPUs serve everybody who works for a request: the target, the load generator on the same host
// and the programs that the target is connected to. A pool's threads are held while they run and
// while they wait for anything but locks and other threads of the target. A lock is held at least
// while somebody waits for it. Sleeps, disks and other servers' answers are delays: how much of them
// fits beside one another is not known.
//
// demands_of() computes them once; the report shows them (resources), and gains are predicted from
// them (prediction.h). In: what was measured and its vitals. Out: Demands. Pure; never fails: where
// nothing was measured, there are no resources.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/demand/resource_kind.h"
#include "analysis/measured.h"
#include "analysis/verdict/vital.h"

namespace assay::analysis {

enum class WorkUnit : uint8_t { request, wakeup };
constexpr std::string_view work_unit_id(WorkUnit unit) {
  return unit == WorkUnit::request ? "request" : "wake-up";
}

// How a pool's threads stand to a unit of work.
enum class PoolPlace : uint8_t {
  queue,   // each unit takes one of its threads for a while, and waits until one is free
  beside,  // they wait for data that the unit waits for: a delay, and no queue
  apart,   // they come to work far less often than units do: only their CPU time counts
};

struct PoolDemand {
  std::string pool;
  double threads = 0;     // that lived through the window, on average
  double held_share = 0;  // of their time: not idle
  PoolPlace place = PoolPlace::queue;
  double running_s = 0;   // per unit, and so are all below
  std::array<double, kBlockKindCount> blocked_s{};

  // What holds a thread by itself: no waits for locks or for other threads.
  double own_s() const;
};

struct LockDemand {
  std::string name;
  double busy_share = 0;  // of busy time that is spent waiting for it
  double held_s = 0;  // per unit, while somebody waits for it
  double waited_s = 0;  // per unit
  double waiters = 0;
};

// One line of the report's table.
struct Resource {
  ResourceKind kind = ResourceKind::other;
  std::string name;
  double servers = 0;  // how many can be served at once; 0: not known
  double demand_s = 0;
  double busy_share = 0;  // of what it can do; of a delay: of the window, on average (may be over 1)
  double waiting = 0;     // how many wait for it, on average
  bool limits = false;    // it is busy nearly all the time, and the busiest
};

struct Demands {
  WorkUnit unit = WorkUnit::request;
  double units_per_s = 0;
  double in_flight = 0;         // units that are open at once
  bool in_flight_known = false;  // by the load; else it is taken from connections or threads
  double cpus = 0;              // that may work for it
  double own_cpu_s = 0;         // per unit, of the target
  double kernel_share = 0;      // of the CPU time
  double other_cpu_s = 0;       // per unit, of the generator and of connected programs
  double runqueue_s = 0;        // per unit
  double busy_s = 0;            // per unit: of all pools, whatever they do but idling
  std::vector<PoolDemand> pools;
  std::vector<LockDemand> locks;  // as the run's locks
  std::vector<Resource> resources;  // the busiest first, delays last

  bool known() const { return units_per_s > 0 && !pools.empty(); }
};

Demands demands_of(const Measured& run, const Vitals& vitals);

}  // namespace assay::analysis
