// Workload: what was asked of the target while it was watched.
//
// In: a run's load series and facts (scope "load"). Out: Workload; `measured` is false where the
// run holds none. Failures: the Reader's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "run/reader.h"

namespace assay::analysis {

struct Workload {
  bool present = false;
  bool measured = false;
  std::string kind;  // "url", "command"
  std::string what;  // the URL or command
  bool closed_loop = true;
  std::optional<double> connections, streams, rate;
  int64_t requests = 0;  // inside the window
  int64_t errors = 0;
  double throughput_per_s = 0;
  double drift_share = 0;  // how much throughput changed over the window, when it surely did
  double surely_drifted_share = 0;  // the least of it that the scatter within the window leaves
  std::optional<int64_t> p50_ns, p90_ns, p99_ns, max_ns;
  bool generator_saturated = false;
  std::optional<double> generator_cpus;  // CPUs that the generator itself used
  std::string ended;                     // "" or why it did not cover the capture
  std::string figures;                   // all but what it was, for a header
  // Requests in flight: the connections' streams, or by Little's law.
  double concurrency() const;
};

Result<Workload> read_workload(const run::Reader& reader);

}  // namespace assay::analysis
