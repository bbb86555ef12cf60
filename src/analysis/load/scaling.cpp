#include "analysis/load/scaling.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace assay::analysis {
namespace {

constexpr double kRiseThatCounts = 0.05;  // of throughput, from one level to the next
constexpr double kThreadsThatCount = 0.02;
constexpr double kThreadsWorthARow = 0.005;
constexpr double kWideScatter = 0.15;  // of a level from the curve
constexpr double kManyErrors = 0.01;

double threads_in(int64_t ns, const ScalingLevel& level) {
  return level.window_ns > 0 ? static_cast<double>(ns) / static_cast<double>(level.window_ns) : 0;
}

double per_request(int64_t ns, const ScalingLevel& level) {
  return level.requests > 0 ? static_cast<double>(ns) / static_cast<double>(level.requests) : 0;
}

Trend trend_of(const std::vector<double>& threads) {
  double first = threads.front(), last = threads.back();
  if (last > 1.25 * first + kThreadsThatCount) return Trend::grows;
  if (last < 0.8 * first - kThreadsThatCount) return Trend::shrinks;
  return Trend::steady;
}

template <class TimeOf>
void add_row(const std::vector<ScalingLevel>& levels, std::string id, std::string name,
             TimeOf time_of, std::vector<ScalingRow>& rows) {
  ScalingRow row;
  row.id = std::move(id);
  row.name = std::move(name);
  bool any = false;
  for (const ScalingLevel& level : levels) {
    int64_t ns = time_of(level.time);
    any |= threads_in(ns, level) >= kThreadsWorthARow;
    row.threads.push_back(threads_in(ns, level));
    row.per_request.push_back(per_request(ns, level));
  }
  if (!any) return;
  row.trend = trend_of(row.threads);
  rows.push_back(std::move(row));
}

std::vector<ScalingRow> rows_of(const std::vector<ScalingLevel>& levels) {
  std::vector<ScalingRow> rows;
  add_row(
      levels, "user", "running, user", [](const TimeSplit& t) { return t.user_ns; }, rows);
  add_row(
      levels, "kernel", "running, kernel", [](const TimeSplit& t) { return t.kernel_ns; }, rows);
  add_row(
      levels, "runqueue", "waiting for a CPU", [](const TimeSplit& t) { return t.runqueue_ns; },
      rows);
  for (int i = 0; i < kBlockKindCount; ++i) {
    auto kind = static_cast<BlockKind>(i);
    add_row(
        levels, std::string(block_kind_id(kind)), "blocked, " + std::string(block_kind_name(kind)),
        [kind](const TimeSplit& t) { return t.of(kind); }, rows);
  }
  add_row(
      levels, "idle", "idle", [](const TimeSplit& t) { return t.idle_ns; }, rows);
  return rows;
}

void add_fit(Scaling& scaling) {
  std::vector<UslPoint> all, unlimited;
  for (const ScalingLevel& level : scaling.levels) {
    UslPoint point{static_cast<double>(level.clients), level.throughput};
    all.push_back(point);
    if (!level.generator_saturated) unlimited.push_back(point);
  }
  // Levels that the generator limited are of the generator; without them, if enough are left.
  scaling.fit_leaves_out = unlimited.size() >= 3 && unlimited.size() < all.size();
  auto fit = fit_usl(scaling.fit_leaves_out ? unlimited : all);
  if (fit) {
    scaling.fit = *fit;
  } else {
    scaling.no_fit = fit.error().what;
  }
}

std::string peak_sentence(const UslFit& fit) {
  if (!std::isfinite(fit.peak_throughput)) {
    return "The curve has no limit in what was measured: sweep further to find one.";
  }
  if (!std::isfinite(fit.peak_concurrency)) {
    return fmt::format(
        "The curve flattens towards {:.0f} requests/s; {:.0f} clients are enough to come near it.",
        fit.peak_throughput, std::max(1.0, fit.knee_concurrency));
  }
  std::string range = std::isfinite(fit.peak_range.high)
                          ? fmt::format("{:.0f}–{:.0f}", fit.peak_range.low, fit.peak_range.high)
                          : fmt::format("{:.0f} or more", fit.peak_range.low);
  return fmt::format(
      "Predicted best: {:.0f} clients (95 %: {}), {:.0f} requests/s; the knee is at {:.0f}.",
      fit.peak_concurrency, range, fit.peak_throughput, fit.knee_concurrency);
}

void say_whether_clients_help(Scaling& scaling) {
  const ScalingLevel& best = scaling.levels[scaling.best];
  const ScalingLevel& last = scaling.levels.back();
  if (scaling.levels.size() < 2) return;
  const ScalingLevel& before = scaling.levels[scaling.levels.size() - 2];
  if (scaling.best + 1 < scaling.levels.size() &&
      last.throughput < (1 - kRiseThatCounts) * best.throughput) {
    scaling.sentences.push_back(fmt::format(
        "Adding clients makes it worse: {} clients got {:.0f} requests/s, {} clients {:.0f}.",
        best.clients, best.throughput, last.clients, last.throughput));
    return;
  }
  double rise = before.throughput > 0 ? last.throughput / before.throughput - 1 : 0;
  double added = static_cast<double>(last.clients) / std::max(1U, before.clients) - 1;
  if (rise < std::max(kRiseThatCounts, 0.1 * added)) {
    scaling.sentences.push_back(fmt::format(
        "Adding clients will not help: from {} to {} clients throughput changed by {:+.0f} % and "
        "p50 latency went from {} to {}.",
        before.clients, last.clients, rise * 100, format_duration(before.p50_ns),
        format_duration(last.p50_ns)));
    return;
  }
  scaling.more_clients_help = true;
  scaling.sentences.push_back(fmt::format(
      "Throughput still rises at {} clients ({:+.0f} % from {}): sweep further for its limit.",
      last.clients, rise * 100, before.clients));
}

void say_what_grows(Scaling& scaling) {
  std::string grows, shrinks;
  for (const ScalingRow& row : scaling.rows) {
    bool work = row.id == "user" || row.id == "kernel";
    std::string* list = row.trend == Trend::grows && !work ? &grows
                        : row.trend == Trend::shrinks      ? &shrinks
                                                           : nullptr;
    if (list == nullptr) continue;
    *list += fmt::format("{}{} ({:.2f} → {:.2f} threads)", list->empty() ? "" : ", ", row.name,
                         row.threads.front(), row.threads.back());
  }
  if (!grows.empty()) {
    scaling.sentences.push_back("Grows with load, so it is contention or queueing: " + grows + ".");
  }
  if (!shrinks.empty()) {
    scaling.sentences.push_back("Shrinks with load, so it was waiting for work: " + shrinks + ".");
  }
}

void say_what_limits_this(Scaling& scaling) {
  auto limited = std::find_if(scaling.levels.begin(), scaling.levels.end(),
                              [](const ScalingLevel& level) { return level.generator_saturated; });
  if (limited != scaling.levels.end()) {
    scaling.sentences.push_back(fmt::format(
        "From {} clients on the load generator itself was the limit{}.", limited->clients,
        scaling.fit_leaves_out ? "; the curve leaves those levels out"
                               : ": the curve describes server and generator together"));
  }
  for (const ScalingLevel& level : scaling.levels) {
    double failed = level.requests > 0
                        ? static_cast<double>(level.errors) / static_cast<double>(level.requests)
                        : 0;
    if (failed > kManyErrors) {
      scaling.sentences.push_back(fmt::format("At {} clients {} of the requests failed.",
                                              level.clients, format_percent(failed)));
    }
    if (!level.covered) {
      scaling.sentences.push_back(
          fmt::format("At {} clients the load did not cover the capture.", level.clients));
    }
  }
}

}  // namespace

Scaling summarise_scaling(std::vector<ScalingLevel> levels) {
  Scaling scaling;
  std::sort(levels.begin(), levels.end(),
            [](const ScalingLevel& a, const ScalingLevel& b) { return a.clients < b.clients; });
  scaling.levels = std::move(levels);
  if (scaling.levels.empty()) {
    scaling.no_fit = "no level was measured";
    return scaling;
  }
  for (size_t i = 1; i < scaling.levels.size(); ++i) {
    if (scaling.levels[i].throughput > scaling.levels[scaling.best].throughput) scaling.best = i;
  }
  scaling.rows = rows_of(scaling.levels);
  add_fit(scaling);
  say_whether_clients_help(scaling);
  if (scaling.fit) scaling.sentences.push_back(peak_sentence(*scaling.fit));
  if (scaling.fit && scaling.fit->worst_error > kWideScatter) {
    scaling.sentences.push_back(fmt::format(
        "The levels scatter around the curve by up to {}: measure each for longer (--for) before "
        "trusting it.",
        format_percent(scaling.fit->worst_error)));
  }
  if (scaling.levels.size() > 1) say_what_grows(scaling);
  say_what_limits_this(scaling);
  return scaling;
}

}  // namespace assay::analysis
