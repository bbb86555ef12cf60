#include "analysis/load/load_summary.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "analysis/compare/statistics/statistics.h"
#include "base/units.h"

namespace assay::analysis {
namespace {

using Points = std::map<std::string, std::vector<model::Point>>;

template <class Number>
Number number(const std::string& text) {
  Number value{};
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() ? value : Number{};
}

// False when the run has no facts of load.
bool read_facts(const run::Contents& run, LoadSummary& load) {
  bool any = false;
  for (const model::Fact& fact : run.facts) {
    if (fact.scope != "load") continue;
    any = true;
    if (fact.key == "kind") load.kind = fact.value;
    if (fact.key == "what") load.what = fact.value;
    if (fact.key == "mode") load.mode = fact.value;
    if (fact.key == "ended") load.ended = fact.value;
    if (fact.key == "output") load.output = fact.value;
    if (fact.key == "connections") load.connections = number<uint32_t>(fact.value);
    if (fact.key == "streams") load.streams = number<uint32_t>(fact.value);
    if (fact.key == "restarts") load.restarts = number<uint32_t>(fact.value);
    if (fact.key == "rate") load.rate = number<double>(fact.value);
    if (fact.key == "requests") load.requests = number<uint64_t>(fact.value);
    if (fact.key == "errors") load.errors = number<uint64_t>(fact.value);
    if (fact.key == "throughput_per_s") load.throughput_per_s = number<double>(fact.value);
    if (fact.key == "p50_ns") load.p50_ns = number<int64_t>(fact.value);
    if (fact.key == "p90_ns") load.p90_ns = number<int64_t>(fact.value);
    if (fact.key == "p99_ns") load.p99_ns = number<int64_t>(fact.value);
    if (fact.key == "max_ns") load.max_ns = number<int64_t>(fact.value);
    if (fact.key == "generator_saturated") load.generator_saturated = fact.value == "yes";
    if (fact.key == "generator_cpu_share") load.generator_cpu_share = number<double>(fact.value);
  }
  return any;
}

Result<Points> read_points(const run::Reader& reader) {
  Points all;
  for (const model::Series& series : reader.contents().series) {
    if (series.scope != model::SeriesScope::load) continue;
    auto points = reader.points(series.id);
    if (!points) return std::unexpected(points.error());
    std::sort(points->begin(), points->end(),
              [](const model::Point& a, const model::Point& b) { return a.time < b.time; });
    all[series.name] = std::move(*points);
  }
  return all;
}

// The value at exactly that time; `otherwise` when there is none.
int64_t value_at(const Points& all, const std::string& name, TimeNs time, int64_t otherwise) {
  auto series = all.find(name);
  if (series == all.end()) return otherwise;
  auto it = std::lower_bound(series->second.begin(), series->second.end(), time,
                             [](const model::Point& point, TimeNs at) { return point.time < at; });
  return it != series->second.end() && it->time == time ? it->value : otherwise;
}

uint64_t growth(const Points& all, const std::string& name, TimeNs from, TimeNs to) {
  int64_t before = value_at(all, name, from, 0);
  return static_cast<uint64_t>(std::max<int64_t>(0, value_at(all, name, to, before) - before));
}

std::vector<LoadSecond> seconds_of(const Points& all, bool measured) {
  std::vector<LoadSecond> seconds;
  auto clock = all.find(measured ? "requests" : "generator_cpu");
  if (clock == all.end()) return seconds;
  for (size_t i = 1; i < clock->second.size(); ++i) {
    LoadSecond second;
    second.begin_ns = clock->second[i - 1].time;
    second.end_ns = clock->second[i].time;
    if (second.end_ns <= second.begin_ns) continue;
    second.requests = growth(all, "requests", second.begin_ns, second.end_ns);
    second.errors = growth(all, "errors", second.begin_ns, second.end_ns);
    second.generator_cpu_ns =
        static_cast<int64_t>(growth(all, "generator_cpu", second.begin_ns, second.end_ns));
    uint64_t good = second.requests - std::min(second.requests, second.errors);
    second.per_second =
        static_cast<double>(good) * 1e9 / static_cast<double>(second.end_ns - second.begin_ns);
    second.p50_ns = value_at(all, "latency_p50", second.end_ns, 0);
    second.p90_ns = value_at(all, "latency_p90", second.end_ns, 0);
    second.p99_ns = value_at(all, "latency_p99", second.end_ns, 0);
    second.max_ns = value_at(all, "latency_max", second.end_ns, 0);
    seconds.push_back(second);
  }
  return seconds;
}

// A least-squares line through the seconds that are long enough to have a rate of their own.
void fit_drift(LoadSummary& load) {
  std::vector<std::pair<double, double>> rows;
  for (const LoadSecond& second : load.seconds) {
    if (second.end_ns - second.begin_ns < kNsPerSecond / 2) continue;
    rows.emplace_back(static_cast<double>(second.begin_ns / 2 + second.end_ns / 2) / 1e9,
                      second.per_second);
  }
  auto n = static_cast<double>(rows.size());
  if (rows.size() < 3) return;
  double mean_t = 0, mean_r = 0, tt = 0, tr = 0, left = 0;
  for (auto [t, r] : rows) mean_t += t / n, mean_r += r / n;
  for (auto [t, r] : rows) {
    tt += (t - mean_t) * (t - mean_t);
    tr += (t - mean_t) * (r - mean_r);
  }
  if (tt <= 0 || mean_r <= 0) return;
  double slope = tr / tt;
  for (auto [t, r] : rows) {
    double residual = r - mean_r - slope * (t - mean_t);
    left += residual * residual;
  }
  double span = rows.back().first - rows.front().first;
  double start = mean_r + slope * (rows.front().first - mean_t);
  if (start <= 0) return;
  load.drift = slope * span / start;
  double sure = student_quantile(n - 2, 0.975);
  load.drift_error = sure * std::sqrt(left / (n - 2) / tt) * span / start;
}

}  // namespace

Result<std::optional<LoadSummary>> summarise_load(const run::Reader& reader) {
  LoadSummary load;
  bool has_facts = read_facts(reader.contents(), load);
  auto points = read_points(reader);
  if (!points) return std::unexpected(points.error());
  if (!has_facts && points->empty()) return std::nullopt;
  if (!has_facts) {
    // The capture was cut off before it could say how the load went; the series tell the most.
    load.kind = points->contains("requests") ? "url" : "command";
    load.ended = "early: the capture was cut off";
  }
  load.seconds = seconds_of(*points, load.measured());
  fit_drift(load);
  return load;
}

std::string load_figures(const LoadSummary& load) {
  std::string text;
  auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (load.measured()) {
    add(fmt::format(
        "{} loop, {} connection{}{}: {:.0f} requests/s, p50 {}, p99 {}, {}", load.mode,
        load.connections, load.connections == 1 ? "" : "s",
        load.streams > 1 ? fmt::format(" × {} streams", load.streams) : "", load.throughput_per_s,
        format_duration(load.p50_ns), format_duration(load.p99_ns),
        load.errors == 0 ? "no errors"
                         : fmt::format("{} errors ({})", format_count(load.errors),
                                       format_percent(static_cast<double>(load.errors) /
                                                      static_cast<double>(
                                                          std::max<uint64_t>(1, load.requests))))));
  }
  if (!load.covered()) add("did not cover the capture: " + load.ended);
  if (load.generator_saturated) add("the generator itself was the limit");
  return text;
}

}  // namespace assay::analysis
