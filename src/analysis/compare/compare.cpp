#include "analysis/compare/compare.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/compare/comparability.h"
#include "analysis/compare/functions/changed_functions.h"
#include "analysis/compare/heap_changes.h"
#include "analysis/compare/sentence.h"
#include "analysis/compare/side_verdict.h"
#include "analysis/compare/sides.h"
#include "analysis/compare/statistics/measure.h"
#include "analysis/compare/statistics/measures.h"
#include "analysis/compare/statistics/run_speeds.h"
#include "analysis/compare/statistics/statistics.h"

namespace assay::analysis {
namespace {

Per choose_per(const Comparison& comparison, const CompareOptions& options) {
  if (options.per) return *options.per;
  // Of how long and of how many requests imported ones are is not known.
  if (any_imported(comparison)) {
    bool no_time =
        all_have(comparison, [](const RunValues& run) { return is_heap_alone(run.run_kind); });
    return no_time ? Per::run : Per::share;
  }
  bool requests = all_have(comparison, [](const RunValues& run) { return run.requests > 0; });
  if (requests) return Per::request;
  return all_have(comparison, [](const RunValues& run) { return run.ran_to_its_end(); })
             ? Per::run
             : Per::second;
}

bool is_same_capture(const RunValues& a, const RunValues& b) {
  return a.info.utc_begin_ns != 0 && a.info.utc_begin_ns == b.info.utc_begin_ns &&
         a.info.window_begin_ns == b.info.window_begin_ns && a.samples == b.samples &&
         a.waits == b.waits;
}

// The unit is the run: one that is given twice would make its own luck look like certainty.
Result<void> refuse_repeated(const Side& side) {
  for (size_t i = 0; i < side.runs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const RunValues &one = side.runs[i], &other = side.runs[j];
      if (!is_same_capture(one, other)) continue;
      return fail_with_remedy(
          fmt::format("{} and {} are the same run, which counts once", other.path, one.path),
          "record another run");
    }
  }
  return {};
}

constexpr double kWidestNoChange = 0.1;  // "no change" within more than this would mean little

// Half the runs of one side against its other half: nearer than that two sides cannot be shown.
double same_side_noise(const Comparison& comparison) {
  auto logs = [&](const Side& side) {
    std::vector<double> out;
    for (const RunValues& run : side.runs)
      out.push_back(
          std::log(std::max(1e-9, run.cpu_ns / std::max(1e-9, divisor(run, comparison.per)))));
    return out;
  };
  size_t a = comparison.base.runs.size(), b = comparison.next.runs.size();
  double noise =
      std::max(split_noise(logs(comparison.base), a, b), split_noise(logs(comparison.next), a, b));
  if (comparison.per == Per::share) return kSmallestFloor;
  return std::clamp(std::expm1(noise), kSmallestFloor, kWidestNoChange);
}

std::string percent_change(const Measure& measure) {
  return fmt::format("{:+.1f} %", (measure.ratio - 1) * 100);
}

void measure_speeds(const UnionTree& tree, Comparison& comparison) {
  RunSpeeds speeds = run_speeds(tree, comparison);
  comparison.yardstick = std::move(speeds.yardstick);
  auto slowness = speeds.slowness.begin();
  for (Side* side : {&comparison.base, &comparison.next}) {
    for (RunValues& run : side->runs) run.slowness = speeds.slowness.empty() ? 1 : *slowness++;
  }
  Measure& cost = comparison.yardstick.cost;
  cost.outcome = outcome_of(cost, kHeadlinesLevel, false);
  if (!is_finding(cost.outcome)) return;
  comparison.warnings.push_back(
      fmt::format("most of the program changed alike, by {} ({:+.1f} to {:+.1f} %): the machine "
                  "was another, or "
                  "everything was built otherwise",
                  percent_change(cost), (cost.low - 1) * 100, (cost.high - 1) * 100));
}

}  // namespace

std::string_view per_name(Per per) {
  switch (per) {
    case Per::request:
      return "request";
    case Per::second:
      return "second";
    case Per::share:
      return "share";
    case Per::run:
      return "run";
  }
  return "";
}

TimeUnit time_unit(Per per) {
  if (per == Per::request) return {"µs/request", 1e-3};
  if (per == Per::second) return {"ms/s", 1e-6};
  if (per == Per::run) return {"ms/run", 1e-6};
  return {"% of CPU", 100};
}

std::string_view measure_group_name(MeasureGroup group) {
  switch (group) {
    case MeasureGroup::load_group:
      return "load and CPU";
    case MeasureGroup::time_group:
      return "thread time";
    case MeasureGroup::lock_group:
      return "waits for locks";
    case MeasureGroup::category_group:
      return "CPU by category";
    case MeasureGroup::counter_group:
      return "counters";
    case MeasureGroup::memory_group:
      return "memory";
  }
  return "";
}

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::higher:
      return "higher";
    case Outcome::lower:
      return "lower";
    case Outcome::no_change:
      return "no_change";
    case Outcome::undecided:
      return "undecided";
    case Outcome::descriptive:
      return "descriptive";
  }
  return "";
}

Result<Comparison> compare(const UnionTree& tree, std::vector<RunValues> base,
                           std::vector<RunValues> next, const CompareOptions& options) {
  if (base.empty() || next.empty())
    return fail_with_remedy("a comparison needs at least one run on each side",
                            "assay diff before.assay --vs after.assay");
  Comparison out;
  out.base.runs = std::move(base);
  out.next.runs = std::move(next);
  for (const Side* side : {&out.base, &out.next}) {
    if (auto fine = refuse_repeated(*side); !fine) return std::unexpected(fine.error());
  }
  out.per = choose_per(out, options);
  out.heap_timed = all_have(out, [](const RunValues& run) { return run.heap.timed; });
  for (const Side* side : {&out.base, &out.next}) {
    for (const RunValues& run : side->runs) {
      if (divisor(run, out.per) > 0) continue;
      const char* lacks = out.per != Per::request ? "holds no time"
                          : run.load_measured     ? "has no successful request"
                                                  : "measured no load";
      return fail_with_remedy(
          fmt::format("{} {}: it cannot be compared per {}", run.path, lacks, per_name(out.per)),
          "assay diff --per second, or record with --load");
    }
  }
  out.descriptive = out.base.runs.size() < 2 || out.next.runs.size() < 2;
  out.no_change_within = same_side_noise(out);
  out.warnings = why_not_comparable(out);
  add_measures(out);
  out.base_verdict = side_verdict(out.base);
  out.next_verdict = side_verdict(out.next);
  out.verdict_change = verdict_change(out.base_verdict, out.next_verdict);
  measure_speeds(tree, out);
  ChangedFunctions changed = changed_functions(tree, out, options.max_changes);
  out.changes = std::move(changed.changes);
  out.functions_tested = changed.tested;
  out.has_heap = all_have(out, [](const RunValues& run) { return run.heap.present; });
  HeapChanges heap = heap_changes(out, options.max_changes);
  out.heap_changes = std::move(heap.changes);
  out.heap_sites_tested = heap.tested;
  out.sentence = sentence_of(out);
  return out;
}

}  // namespace assay::analysis
