#include "analysis/compare/statistics/measures.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "analysis/compare/functions/counted_parts.h"
#include "analysis/compare/sides.h"
#include "analysis/compare/statistics/measure.h"
#include "analysis/compare/statistics/statistics.h"

namespace assay::analysis {
namespace {

constexpr double kWorthShowing = 0.01;  // of all thread time, or of the CPU time
constexpr double kFewest = 100;         // counts a run: fewer are chance
constexpr size_t kMostNames = 12;       // locks, categories

using Value = std::function<double(const RunValues&)>;

std::vector<double> values_of(const Side& side, const Value& value) {
  std::vector<double> values;
  for (const RunValues& run : side.runs) values.push_back(value(run));
  return values;
}

double found_in(const std::map<std::string, double>& map, const std::string& key) {
  auto found = map.find(key);
  return found == map.end() ? 0 : found->second;
}

class Measures {
 public:
  explicit Measures(Comparison& comparison)
      : comparison_(comparison), suffix_(fmt::format("_per_{}", per_name(comparison.per))) {}

  void load();
  void failed_requests();
  void thread_time();
  void locks();
  void categories();
  void counted();
  void heap();
  void decide();

 private:
  using Names = std::map<std::string, double> RunValues::*;

  void add(MeasureGroup group, std::string id, std::string name, std::string unit,
           const Value& value, double least = 0);
  // `sampled`: the time is a sum of samples, of which shares are shares of all samples.
  void add_time(MeasureGroup group, const std::string& id, std::string name, const Value& ns,
                bool sampled = false) {
    // What was not seen at all may still have been half a sample.
    const RunValues& first = comparison_.base.runs.front();
    double least = static_cast<double>(first.info.sample_period_ns) / 2 /
                   std::max(1e-9, divisor(first, comparison_.per)) *
                   time_unit(comparison_.per).scale;
    bool of_samples = sampled && comparison_.per == Per::share;
    add(group, id + suffix_, std::move(name), time_unit(comparison_.per).name,
        of_samples ? of_all_samples(ns) : per(ns, true), least);
  }
  // A total of a run divided by requests, seconds or CPU time.
  Value per(const Value& total, bool is_time) const {
    Per per = comparison_.per;
    double scale = is_time ? time_unit(per).scale : 1;
    return [per, scale, total](const RunValues& run) {
      return total(run) / std::max(1e-9, divisor(run, per)) * scale;
    };
  }
  Value of_all_samples(const Value& total) const {
    double scale = time_unit(Per::share).scale;
    return [scale, total](const RunValues& run) {
      return total(run) / std::max(1e-9, function_divisor(run, Per::share)) * scale;
    };
  }
  // Names of a map that matter on some side, heaviest first.
  std::vector<std::string> heavy(Names names, const Value& whole) const;
  std::vector<double> logs(const Side& side, const Value& value, double least) const;

  struct Asked {
    size_t measure;
    double least;
    Value value;
  };
  Comparison& comparison_;
  std::string suffix_;
  std::vector<Asked> asked_;
};

void Measures::add(MeasureGroup group, std::string id, std::string name, std::string unit,
                   const Value& value, double least) {
  std::vector<double> base = values_of(comparison_.base, value);
  std::vector<double> next = values_of(comparison_.next, value);
  double most = std::max(std::ranges::max(base), std::ranges::max(next));
  if (!(most > 0)) return;
  if (least <= 0) least = most * 1e-6;
  Measure measure =
      make_measure(std::move(id), std::move(name), std::move(unit), base, next, least);
  measure.group = group;
  asked_.push_back({comparison_.measures.size(), least, value});
  comparison_.measures.push_back(std::move(measure));
}

std::vector<double> Measures::logs(const Side& side, const Value& value, double least) const {
  std::vector<double> out;
  for (double one : values_of(side, value)) out.push_back(std::log(std::max(one, least)));
  return out;
}

void Measures::load() {
  using enum MeasureGroup;
  if (all_have(comparison_, [](const RunValues& run) { return run.requests > 0; })) {
    add(load_group, "throughput", "throughput", "requests/s",
        [](const RunValues& run) { return run.requests / run.seconds; });
  }
  struct Quantile {
    const char* id;
    const char* name;
    std::optional<double> RunValues::*value;
  };
  for (const Quantile& q : {Quantile{"latency_p50", "latency, median", &RunValues::latency_p50_ns},
                            {"latency_p90", "latency, 90 %", &RunValues::latency_p90_ns},
                            {"latency_p99", "latency, 99 %", &RunValues::latency_p99_ns}}) {
    auto has = [&](const RunValues& run) { return (run.*q.value).has_value(); };
    if (!all_have(comparison_, has)) continue;
    add(load_group, q.id, q.name, "ms",
        [value = q.value](const RunValues& run) { return *(run.*value) / 1e6; });
  }
  failed_requests();
  // A heap profile has no CPU time, and an imported one no length.
  if (all_have(comparison_, [](const RunValues& run) { return is_heap_alone(run.run_kind); }) &&
      !comparison_.heap_timed)
    return;
  if (comparison_.per == Per::run)
    add(load_group, "elapsed", "elapsed", "s", [](const RunValues& run) { return run.seconds; });
  if (comparison_.per != Per::share)
    add_time(load_group, "cpu", "CPU", [](const RunValues& run) { return run.cpu_ns; });
}

// A server that fails fast looks fast.
void Measures::failed_requests() {
  bool any = any_has(comparison_, [](const RunValues& run) { return run.errors > 0; });
  if (!any || !all_have(comparison_, [](const RunValues& run) { return run.load_measured; }))
    return;
  double requests = 0, runs = 0;
  for (const Side* side : {&comparison_.base, &comparison_.next}) {
    for (const RunValues& run : side->runs) requests += run.requests + run.errors, ++runs;
  }
  add(
      MeasureGroup::load_group, "failed", "requests that failed", "%",
      [](const RunValues& run) { return run.failed_share() * 100; },
      50 / std::max(1.0, requests / runs));  // half of one of them
}

void Measures::thread_time() {
  // An imported profile knows neither: its time is what was sampled, whatever that was.
  if (any_imported(comparison_)) return;
  using enum MeasureGroup;
  auto of = [](int64_t TimeSplit::*part) {
    return [part](const RunValues& run) { return static_cast<double>(run.time.*part); };
  };
  add_time(time_group, "user", "running in user mode", of(&TimeSplit::user_ns));
  add_time(time_group, "kernel", "running in the kernel", of(&TimeSplit::kernel_ns));
  if (comparison_.per == Per::share) return;
  add_time(time_group, "runqueue", "waiting for a CPU", of(&TimeSplit::runqueue_ns));
  for (int i = 0; i < kBlockKindCount; ++i) {
    auto kind = static_cast<BlockKind>(i);
    bool worth = any_has(comparison_, [&](const RunValues& run) {
      return static_cast<double>(run.time.of(kind)) >=
             kWorthShowing * static_cast<double>(run.time.wall_ns);
    });
    if (!worth) continue;
    add_time(time_group, fmt::format("blocked_{}", block_kind_id(kind)),
             fmt::format("blocked: {}", block_kind_name(kind)),
             [kind](const RunValues& run) { return static_cast<double>(run.time.of(kind)); });
  }
  // Idle threads are spare capacity: more of it is not a cost, so it is told per second.
  if (comparison_.per == Per::second) add_time(time_group, "idle", "idle", of(&TimeSplit::idle_ns));
  add(time_group, "waits" + suffix_, "waits", fmt::format("1/{}", per_name(comparison_.per)),
      per([](const RunValues& run) { return static_cast<double>(run.waits); }, false));
}

std::vector<std::string> Measures::heavy(Names names, const Value& whole) const {
  std::map<std::string, double> shares;
  for (const Side* side : {&comparison_.base, &comparison_.next}) {
    std::map<std::string, double> of_side;
    for (const RunValues& run : side->runs) {
      double all = whole(run) * static_cast<double>(side->runs.size());
      if (all <= 0) continue;
      for (const auto& [name, ns] : run.*names) of_side[name] += ns / all;
    }
    for (const auto& [name, share] : of_side) shares[name] = std::max(shares[name], share);
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [name, share] : shares) {
    if (share >= kWorthShowing) order.emplace_back(share, name);
  }
  std::ranges::sort(order, std::greater{});
  std::vector<std::string> out;
  for (const auto& [share, name] : order) {
    if (out.size() < kMostNames) out.push_back(name);
  }
  return out;
}

void Measures::locks() {
  if (comparison_.per == Per::share) return;
  auto busy = [](const RunValues& run) { return static_cast<double>(run.time.busy_ns()); };
  for (const std::string& name : heavy(&RunValues::lock_ns, busy)) {
    add_time(MeasureGroup::lock_group, fmt::format("lock[{}]", name), name,
             [name](const RunValues& run) { return found_in(run.lock_ns, name); });
  }
}

void Measures::categories() {
  auto cpu = [](const RunValues& run) { return run.cpu_ns; };
  for (const std::string& name : heavy(&RunValues::category_ns, cpu)) {
    add_time(
        MeasureGroup::category_group, fmt::format("category[{}]", name), name,
        [name](const RunValues& run) { return found_in(run.category_ns, name); }, true);
  }
}

void Measures::counted() {
  for (const CountedPart& part : counted_parts()) {
    std::string id = part.id;
    auto total = [id](const RunValues& run) { return found_in(run.counted, id); };
    if (!all_have(comparison_, [&](const RunValues& run) { return run.counted.contains(id); }))
      continue;
    if (part.level) {
      add(MeasureGroup::memory_group, id, part.name, part.unit, total);
      continue;
    }
    bool enough = any_has(comparison_, [&](const RunValues& run) { return total(run) >= kFewest; });
    if (comparison_.per == Per::share || !enough) continue;
    std::string unit =
        fmt::format("{}/{}", *part.unit == '\0' ? "1" : part.unit, per_name(comparison_.per));
    add(MeasureGroup::counter_group, id + suffix_, part.name, unit, per(total, false));
  }
}

void Measures::heap() {
  using enum MeasureGroup;
  constexpr double kMiB = 1.0 / (1024 * 1024);
  if (!all_have(comparison_, [](const RunValues& run) { return run.heap.present; })) return;
  if (all_have(comparison_, [](const RunValues& run) { return run.heap.live_known; })) {
    add(memory_group, "heap_live", "heap: live at the end", "MiB",
        [](const RunValues& run) { return run.heap.live.bytes * kMiB; });
    add(memory_group, "heap_live_objects", "heap: objects live", "",
        [](const RunValues& run) { return run.heap.live.objects; });
  }
  if (!all_have(comparison_, [](const RunValues& run) { return run.heap.freed_known; })) return;
  if (!comparison_.heap_timed) {
    add(memory_group, "heap_allocated", "heap: allocated", "MiB",
        [](const RunValues& run) { return run.heap.allocated.bytes * kMiB; });
    add(memory_group, "heap_objects", "heap: objects allocated", "",
        [](const RunValues& run) { return run.heap.allocated.objects; });
  }
  if (comparison_.per == Per::share || !comparison_.heap_timed) return;
  bool per_request = comparison_.per == Per::request;
  double scale = per_request ? 1.0 / 1024 : kMiB;
  std::string unit = comparison_.per == Per::second ? "s" : std::string(per_name(comparison_.per));
  add(memory_group, "heap_allocated" + suffix_, "heap: allocated",
      (per_request ? "KiB/" : "MiB/") + unit,
      per([scale](const RunValues& run) { return run.heap.allocated.bytes * scale; }, false));
  add(memory_group, "heap_objects" + suffix_, "heap: objects allocated", "1/" + unit,
      per([](const RunValues& run) { return run.heap.allocated.objects; }, false));
}

void Measures::decide() {
  for (bool headline : {true, false}) {
    std::vector<double> p;
    std::vector<const Asked*> family;
    for (const Asked& asked : asked_) {
      const Measure& measure = comparison_.measures[asked.measure];
      if ((measure.group == MeasureGroup::load_group) != headline) continue;
      family.push_back(&asked);
      p.push_back(measure.p);
    }
    std::vector<double> adjusted = benjamini_hochberg(p);
    for (size_t i = 0; i < family.size(); ++i) {
      const Asked& asked = *family[i];
      Measure& measure = comparison_.measures[asked.measure];
      measure.p = adjusted[i];
      if (comparison_.descriptive) {
        measure.outcome = Outcome::descriptive;
        continue;
      }
      std::vector<double> base = logs(comparison_.base, asked.value, asked.least);
      std::vector<double> next = logs(comparison_.next, asked.value, asked.least);
      bool within = equivalent(welch_test(base, next), std::log1p(comparison_.no_change_within));
      measure.outcome = outcome_of(measure, headline ? kHeadlinesLevel : kMeasuresLevel, within);
    }
  }
}

}  // namespace

void add_measures(Comparison& comparison) {
  Measures measures(comparison);
  measures.load();
  measures.thread_time();
  measures.locks();
  measures.categories();
  measures.counted();
  measures.heap();
  measures.decide();
}

bool is_measure_id(std::string_view id) {
  constexpr std::string_view kWhole[] = {"throughput",  "latency_p50",      "latency_p90",
                                         "latency_p99", "failed",           "elapsed",
                                         "heap_live",   "heap_live_objects"};
  constexpr std::string_view kDivided[] = {"cpu",  "user",  "kernel",         "runqueue",
                                           "idle", "waits", "heap_allocated", "heap_objects"};
  if (std::ranges::find(kWhole, id) != std::end(kWhole)) return true;
  for (const CountedPart& part : counted_parts()) {
    if (part.level && id == part.id) return true;
  }
  for (Per per : {Per::request, Per::second, Per::share, Per::run}) {
    std::string suffix = fmt::format("_per_{}", per_name(per));
    if (!id.ends_with(suffix)) continue;
    std::string_view stem = id.substr(0, id.size() - suffix.size());
    bool named =
        (stem.starts_with("lock[") || stem.starts_with("category[")) && stem.ends_with(']');
    if (named || std::ranges::find(kDivided, stem) != std::end(kDivided)) return true;
    for (int i = 0; i < kBlockKindCount; ++i) {
      if (stem == fmt::format("blocked_{}", block_kind_id(static_cast<BlockKind>(i)))) return true;
    }
    for (const CountedPart& part : counted_parts()) {
      if (!part.level && stem == part.id) return true;
    }
  }
  return false;
}

}  // namespace assay::analysis
