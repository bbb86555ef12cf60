#include "analysis/load/workload.h"

#include <algorithm>
#include <cmath>

#include "analysis/load/load_summary.h"

namespace assay::analysis {
namespace {

std::optional<double> if_any(double value) {
  if (value <= 0) return {};
  return value;
}
std::optional<int64_t> if_any(int64_t value) {
  if (value <= 0) return {};
  return value;
}

// Totals of the series inside the window, where the facts do not say.
void add_seconds(const LoadSummary& summary, Workload& load) {
  uint64_t requests = 0, errors = 0;
  double seconds = 0, generator_ns = 0;
  for (const LoadSecond& second : summary.seconds) {
    requests += second.requests;
    errors += second.errors;
    seconds += static_cast<double>(second.end_ns - second.begin_ns) / 1e9;
    generator_ns += static_cast<double>(second.generator_cpu_ns);
  }
  if (seconds <= 0) return;
  if (load.requests == 0) load.requests = static_cast<int64_t>(requests);
  if (load.errors == 0) load.errors = static_cast<int64_t>(errors);
  if (load.throughput_per_s <= 0) {
    load.throughput_per_s = static_cast<double>(requests - std::min(requests, errors)) / seconds;
  }
  load.generator_cpus = if_any(generator_ns / 1e9 / seconds);
}

}  // namespace

double Workload::concurrency() const {
  if (closed_loop && connections) return *connections * std::max(1.0, streams.value_or(1));
  if (p50_ns) return throughput_per_s * static_cast<double>(*p50_ns) / 1e9;
  return 0;
}

Result<Workload> read_workload(const run::Reader& reader) {
  Workload load;
  auto summary = summarise_load(reader);
  if (!summary) return std::unexpected(summary.error());
  if (!*summary) return load;
  const LoadSummary& s = **summary;
  load.present = true;
  load.measured = s.measured();
  load.kind = s.kind;
  load.what = s.what;
  load.closed_loop = s.mode != "open";
  load.connections = if_any(static_cast<double>(s.connections));
  load.streams = if_any(static_cast<double>(s.streams));
  load.rate = if_any(s.rate);
  load.requests = static_cast<int64_t>(s.requests);
  load.errors = static_cast<int64_t>(s.errors);
  load.throughput_per_s = s.throughput_per_s;
  load.p50_ns = if_any(s.p50_ns);
  load.p90_ns = if_any(s.p90_ns);
  load.p99_ns = if_any(s.p99_ns);
  load.max_ns = if_any(s.max_ns);
  load.generator_saturated = s.generator_saturated;
  load.surely_drifted_share = std::max(0.0, std::abs(s.drift) - s.drift_error);
  load.drift_share = load.surely_drifted_share > 0 ? std::abs(s.drift) : 0;
  load.ended = s.covered() ? "" : s.ended;
  load.figures = load_figures(s);
  add_seconds(s, load);
  return load;
}

}  // namespace assay::analysis
