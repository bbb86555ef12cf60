#include "analysis/workload.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "analysis/thread_counters.h"

namespace assay::analysis {
namespace {

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || !std::isfinite(value)) return {};
  return value;
}

std::optional<int64_t> ns_of(const std::string& text) {
  auto value = number_of(text);
  if (!value || *value < 0 || *value > 9e18) return {};
  return static_cast<int64_t>(*value);
}

void read_fact(const model::Fact& fact, Workload& load) {
  const std::string& v = fact.value;
  if (fact.key == "kind") load.kind = v;
  if (fact.key == "what") load.what = v;
  if (fact.key == "mode") load.closed_loop = v != "open";
  if (fact.key == "connections") load.connections = number_of(v);
  if (fact.key == "streams") load.streams = number_of(v);
  if (fact.key == "rate") load.rate = number_of(v);
  if (fact.key == "requests") load.requests = ns_of(v).value_or(0);
  if (fact.key == "errors") load.errors = ns_of(v).value_or(0);
  if (fact.key == "throughput_per_s") load.throughput_per_s = number_of(v).value_or(0);
  if (fact.key == "p50_ns") load.p50_ns = ns_of(v);
  if (fact.key == "p90_ns") load.p90_ns = ns_of(v);
  if (fact.key == "p99_ns") load.p99_ns = ns_of(v);
  if (fact.key == "max_ns") load.max_ns = ns_of(v);
  if (fact.key == "generator_saturated") load.generator_saturated = v == "yes";
  if (fact.key == "ended") load.ended = v;
}

// Relative change between the first and the second half of the window, by the slope of a straight
// line through the per-interval rates; a window too short for two intervals has none.
double drift_of(const std::vector<model::Point>& points, TimeNs begin, TimeNs end) {
  std::vector<std::pair<double, double>> rates;  // middle of the interval in s, requests per s
  const model::Point* last = nullptr;
  for (const model::Point& point : points) {
    if (point.time < begin || point.time > end) continue;
    if (last && point.time > last->time) {
      double seconds = static_cast<double>(point.time - last->time) / 1e9;
      double middle = static_cast<double>((point.time - begin) + (last->time - begin)) / 2e9;
      if (seconds >= 0.2)
        rates.emplace_back(middle, static_cast<double>(point.value - last->value) / seconds);
      if (seconds < 0.2) continue;
    }
    last = &point;
  }
  if (rates.size() < 4) return 0;
  double n = static_cast<double>(rates.size()), sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (auto [x, y] : rates) sx += x, sy += y, sxx += x * x, sxy += x * y;
  double spread = n * sxx - sx * sx;
  if (spread <= 0 || sy <= 0) return 0;
  double slope = (n * sxy - sx * sy) / spread;
  double span = rates.back().first - rates.front().first;
  return std::abs(slope * span) / (sy / n);
}

}  // namespace

double Workload::concurrency() const {
  if (closed_loop && connections) return *connections * std::max(1.0, streams.value_or(1));
  if (p50_ns) return throughput_per_s * static_cast<double>(*p50_ns) / 1e9;
  return 0;
}

Result<Workload> read_workload(const run::Reader& reader) {
  const run::Contents& run = reader.contents();
  Workload load;
  for (const model::Fact& fact : run.facts) {
    if (fact.scope != "load") continue;
    load.measured = true;
    read_fact(fact, load);
  }
  TimeNs begin = run.info.window_begin_ns, end = run.info.window_end_ns;
  for (const model::Series& series : run.series) {
    if (series.scope != model::SeriesScope::load) continue;
    bool cumulative =
        series.name == "requests" || series.name == "errors" || series.name == "generator_cpu";
    if (!cumulative) continue;
    auto points = reader.points(series.id);
    if (!points) return std::unexpected(points.error());
    auto growth = growth_of(*points, begin, end);
    if (!growth) continue;
    load.measured = true;
    double seconds = static_cast<double>(growth->end_ns - growth->begin_ns) / 1e9;
    if (series.name == "requests") {
      load.requests = growth->by;
      load.throughput_per_s = static_cast<double>(growth->by) / seconds;
      load.drift_share = drift_of(*points, begin, end);
    } else if (series.name == "errors") {
      load.errors = growth->by;
    } else {
      load.generator_cpus = static_cast<double>(growth->by) / 1e9 / seconds;
    }
  }
  return load;
}

}  // namespace assay::analysis
