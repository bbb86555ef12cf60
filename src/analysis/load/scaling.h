// Scaling: what more clients do to a server: throughput, latency, and where its threads' time goes.
//
// In: one ScalingLevel per concurrency, each from a capture of its own. Out: the curve through them
// (Universal Scalability Law), how each kind of thread time changes with load, and sentences that
// say what it means. What grows with load while throughput does not is contention; what shrinks was
// waiting for work. Pure. Failures: none; what cannot be fitted says why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/time/thread_time.h"
#include "analysis/load/usl.h"

namespace assay::analysis {

struct ScalingLevel {
  uint32_t clients = 0;
  double throughput = 0;  // per second, answered well
  int64_t p50_ns = 0, p90_ns = 0, p99_ns = 0;
  uint64_t requests = 0, errors = 0;
  TimeSplit time;  // of all the server's threads
  int64_t window_ns = 0;
  double generator_share = 0;  // of a CPU
  bool generator_saturated = false;
  bool covered = true;
};

enum class Trend : uint8_t { steady, grows, shrinks };

// One kind of thread time over the levels.
struct ScalingRow {
  std::string id;                   // "user", "lock", …
  std::string name;                 // for people
  std::vector<double> threads;      // how many threads were in it, on average
  std::vector<double> per_request;  // ns
  Trend trend = Trend::steady;
};

struct Scaling {
  std::vector<ScalingLevel> levels;  // by clients
  std::optional<UslFit> fit;
  std::string no_fit;              // why there is none
  bool fit_leaves_out = false;     // levels at which the generator was the limit
  std::vector<ScalingRow> rows;    // kinds that are there at all
  size_t best = 0;                 // index of the level with the most throughput
  bool more_clients_help = false;  // beyond the highest level measured
  std::vector<std::string> sentences;
};

Scaling summarise_scaling(std::vector<ScalingLevel> levels);

}  // namespace assay::analysis
