#include "analysis/profile/thread_counters.h"

#include <algorithm>

namespace assay::analysis {

std::optional<Growth> growth_of(const std::vector<model::Point>& points, TimeNs begin_ns,
                                TimeNs end_ns) {
  const model::Point* first = nullptr;
  const model::Point* last = nullptr;
  for (const model::Point& point : points) {
    if (point.time < begin_ns || point.time > end_ns) continue;
    if (!first || point.time < first->time) first = &point;
    if (!last || point.time > last->time) last = &point;
  }
  if (!first || first->time == last->time || last->value < first->value) return std::nullopt;
  return Growth{first->time, last->time, last->value - first->value};
}

Result<std::vector<ThreadCounters>> read_thread_counters(const run::Reader& reader) {
  const run::Contents& run = reader.contents();
  std::vector<ThreadCounters> counters(run.threads.size());
  for (const model::Series& series : run.series) {
    if (series.scope != model::SeriesScope::thread || series.owner >= counters.size()) continue;
    ThreadCounters& mine = counters[series.owner];
    std::optional<Growth>* slot = series.name == "run"         ? &mine.run_ns
                                  : series.name == "run_delay" ? &mine.run_delay
                                  : series.name == "utime"     ? &mine.utime
                                  : series.name == "stime"     ? &mine.stime
                                                               : nullptr;
    if (!slot) continue;
    auto points = reader.points(series.id);
    if (!points) return std::unexpected(points.error());
    const model::Thread& thread = run.threads[series.owner];
    *slot = growth_of(*points, std::max(thread.begin_ns, run.info.window_begin_ns),
                      std::min(thread.end_ns, run.info.window_end_ns));
  }
  return counters;
}

Result<OwnCost> read_own_cost(const run::Reader& reader) {
  OwnCost cost;
  for (const model::Series& series : reader.contents().series) {
    if (series.scope != model::SeriesScope::self) continue;
    bool cpu = series.name == "cpu";  // of all its threads; "counters_cpu" is part of it
    if (!cpu && series.name != "rss") continue;
    auto points = reader.points(series.id);
    if (!points) return std::unexpected(points.error());
    if (points->empty()) continue;
    if (cpu) {
      auto growth = growth_of(*points, INT64_MIN, INT64_MAX);
      if (growth) cost.cpu_ns = growth->by;
    } else {
      for (const model::Point& point : *points) {
        cost.peak_rss_bytes = std::max(cost.peak_rss_bytes.value_or(0), point.value);
      }
    }
  }
  return cost;
}

}  // namespace assay::analysis
