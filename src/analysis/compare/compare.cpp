#include "analysis/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "analysis/compare/changed_functions.h"
#include "analysis/compare/comparability.h"
#include "analysis/compare/measure.h"
#include "analysis/compare/statistics.h"

namespace assay::analysis {
namespace {

constexpr double kSmallestFloor = 0.02;
constexpr double kWorthShowing = 0.01;  // of all thread time, for kinds of waiting

using Value = std::function<double(const RunValues&)>;

std::vector<double> values_of(const Side& side, const Value& value) {
  std::vector<double> values;
  for (const RunValues& run : side.runs) values.push_back(value(run));
  return values;
}

bool all_have(const Comparison& comparison, const std::function<bool(const RunValues&)>& has) {
  return std::ranges::all_of(comparison.base.runs, has) &&
         std::ranges::all_of(comparison.next.runs, has);
}

Per choose_per(const Comparison& comparison, const CompareOptions& options) {
  if (options.per) return *options.per;
  bool requests = all_have(comparison, [](const RunValues& run) { return run.requests > 0; });
  return requests ? Per::request : Per::second;
}

// The unit of times: per request in µs, per second in ms, shares in percent.
struct Shown {
  std::string unit;
  double scale;  // from ns per divisor
};
Shown shown_as(Per per) {
  if (per == Per::request) return {"µs/request", 1e-3};
  if (per == Per::second) return {"ms/s", 1e-6};
  return {"% of CPU", 100};
}

class Measures {
 public:
  explicit Measures(Comparison& comparison) : comparison_(comparison) {}

  void add(std::string id, std::string name, std::string unit, const Value& value) {
    std::vector<double> base = values_of(comparison_.base, value);
    std::vector<double> next = values_of(comparison_.next, value);
    double most = std::max(std::ranges::max(base), std::ranges::max(next));
    if (most <= 0) return;
    Measure measure =
        make_measure(std::move(id), std::move(name), std::move(unit), base, next, most * 1e-6);
    measure.outcome = comparison_.descriptive ? Outcome::descriptive
                                              : outcome_of(measure, measure.p, comparison_.floor,
                                                           within_floor(base, next, most * 1e-6));
    comparison_.measures.push_back(std::move(measure));
  }

 private:
  bool within_floor(std::span<const double> base, std::span<const double> next, double least) {
    auto logs = [&](std::span<const double> values) {
      std::vector<double> out;
      for (double value : values) out.push_back(std::log(std::max(value, least)));
      return out;
    };
    return equivalent(welch_test(logs(base), logs(next)), std::log(1 + comparison_.floor));
  }

  Comparison& comparison_;
};

void add_measures(Comparison& comparison) {
  Measures measures(comparison);
  Per per = comparison.per;
  Shown shown = shown_as(per);
  auto time = [per, shown](const std::function<double(const RunValues&)>& ns) {
    return [per, shown, ns](const RunValues& run) {
      return ns(run) / std::max(1e-9, divisor(run, per)) * shown.scale;
    };
  };
  std::string suffix = fmt::format("_per_{}", per_name(per));
  if (all_have(comparison, [](const RunValues& run) { return run.requests > 0; })) {
    measures.add("throughput", "throughput", "requests/s",
                 [](const RunValues& run) { return run.requests / run.seconds; });
  }
  if (all_have(comparison, [](const RunValues& run) { return run.latency_p50_ns.has_value(); })) {
    measures.add("latency_p50", "latency, median", "ms",
                 [](const RunValues& run) { return *run.latency_p50_ns / 1e6; });
  }
  if (all_have(comparison, [](const RunValues& run) { return run.latency_p99_ns.has_value(); })) {
    measures.add("latency_p99", "latency, 99th percentile", "ms",
                 [](const RunValues& run) { return *run.latency_p99_ns / 1e6; });
  }
  if (per != Per::share) {
    measures.add("cpu" + suffix, "CPU", shown.unit,
                 time([](const RunValues& run) { return run.cpu_ns; }));
  }
  measures.add("user" + suffix, "CPU in user mode", shown.unit,
               time([](const RunValues& run) { return static_cast<double>(run.time.user_ns); }));
  measures.add("kernel" + suffix, "CPU in the kernel", shown.unit,
               time([](const RunValues& run) { return static_cast<double>(run.time.kernel_ns); }));
  if (per == Per::share) return;
  measures.add("runqueue" + suffix, "waiting for a CPU", shown.unit, time([](const RunValues& run) {
                 return static_cast<double>(run.time.runqueue_ns);
               }));
  for (int i = 0; i < kBlockKindCount; ++i) {
    auto kind = static_cast<BlockKind>(i);
    auto worth = [&](const RunValues& run) {
      return static_cast<double>(run.time.of(kind)) >=
             kWorthShowing * static_cast<double>(run.time.wall_ns);
    };
    if (!std::ranges::any_of(comparison.base.runs, worth) &&
        !std::ranges::any_of(comparison.next.runs, worth))
      continue;
    measures.add(
        fmt::format("blocked_{}{}", block_kind_id(kind), suffix),
        fmt::format("blocked: {}", block_kind_name(kind)), shown.unit,
        time([kind](const RunValues& run) { return static_cast<double>(run.time.of(kind)); }));
  }
  measures.add("waits" + suffix, "waits", fmt::format("1/{}", per_name(per)),
               [per](const RunValues& run) {
                 return static_cast<double>(run.waits) / std::max(1e-9, divisor(run, per));
               });
}

double noise_floor(const Comparison& comparison) {
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
  return std::max(kSmallestFloor, comparison.per == Per::share ? 0 : std::expm1(noise));
}

std::string percent_change(const Measure& measure) {
  return fmt::format("{:+.1f} %", (measure.ratio - 1) * 100);
}

const Measure* main_measure(const Comparison& comparison) {
  for (const Measure& measure : comparison.measures) {
    if (measure.id.starts_with("cpu_per") || measure.id.starts_with("user_per")) return &measure;
  }
  return nullptr;
}

std::string sentence_of(const Comparison& comparison) {
  const Measure* cpu = main_measure(comparison);
  if (cpu == nullptr) return "The runs hold no CPU time to compare.";
  std::string what = cpu->name + " per " + std::string(per_name(comparison.per));
  switch (cpu->outcome) {
    case Outcome::higher:
    case Outcome::lower:
      return fmt::format("{} changed by {} (95 % interval {:+.1f} to {:+.1f} %).", what,
                         percent_change(*cpu), (cpu->low - 1) * 100, (cpu->high - 1) * 100);
    case Outcome::no_change:
      return fmt::format("{} did not change: the difference is certainly within ±{:.1f} %.", what,
                         comparison.floor * 100);
    case Outcome::undecided:
      return fmt::format(
          "{}: no change shown ({}), but these runs cannot exclude one ({:+.1f} to {:+.1f} %).",
          what, percent_change(*cpu), (cpu->low - 1) * 100, (cpu->high - 1) * 100);
    case Outcome::descriptive:
      return fmt::format(
          "{}: {}. With one run on a side this describes those runs; it does not show a change.",
          what, percent_change(*cpu));
  }
  return "";
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
  out.per = choose_per(out, options);
  for (const Side* side : {&out.base, &out.next}) {
    for (const RunValues& run : side->runs) {
      if (divisor(run, out.per) > 0) continue;
      const char* lacks = out.per == Per::request ? "measured no load" : "holds no time";
      return fail_with_remedy(
          fmt::format("{} {}: it cannot be compared per {}", run.path, lacks, per_name(out.per)),
          "assay diff --per second, or record with --load");
    }
  }
  out.descriptive = out.base.runs.size() < 2 || out.next.runs.size() < 2;
  out.floor = noise_floor(out);
  out.warnings = why_not_comparable(out);
  add_measures(out);
  ChangedFunctions changed = changed_functions(tree, out, options.max_changes);
  out.changes = std::move(changed.changes);
  out.functions_tested = changed.tested;
  out.sentence = sentence_of(out);
  return out;
}

}  // namespace assay::analysis
