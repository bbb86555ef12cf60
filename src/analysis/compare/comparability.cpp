#include "analysis/compare/comparability.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/compare/sides.h"

namespace assay::analysis {
namespace {

struct Fixed {
  const char* fact;
  const char* what;
};
// Facts that should be the same on both sides.
constexpr Fixed kFixed[] = {{"host hostname", "machines"},
                            {"host cpu_model", "CPU models"},
                            {"host cpus_online", "numbers of CPUs"},
                            {"host kernel", "kernels"},
                            {"load what", "loads"},
                            {"load mode", "kinds of load"},
                            {"load connections", "numbers of connections"},
                            {"load streams", "numbers of streams"},
                            {"load rate", "request rates"}};

std::set<std::string> values_of(const Side& side, const std::string& fact) {
  std::set<std::string> values;
  for (const RunValues& run : side.runs) {
    auto found = run.facts.find(fact);
    if (found != run.facts.end()) values.insert(found->second);
  }
  return values;
}

// Values that a side's processes have for a fact of theirs ("build": optimised, debug).
std::set<std::string> process_values(const Side& side, std::string_view key) {
  std::set<std::string> values;
  for (const RunValues& run : side.runs) {
    for (const auto& [fact, value] : run.facts) {
      size_t space = fact.rfind(' ');
      if (fact.starts_with("process ") && fact.substr(space + 1) == key) values.insert(value);
    }
  }
  return values;
}

std::string joined(const std::set<std::string>& values) {
  return values.empty() ? std::string("unknown") : fmt::format("{}", fmt::join(values, ", "));
}

// How the programs were built and what they may use.
void check_processes(const Comparison& comparison, std::vector<std::string>& out) {
  constexpr Fixed kOfProcess[] = {{"build", "build types"},
                                  {"sanitizers", "sanitizers"},
                                  {"debug_containers", "debug containers"},
                                  {"usable_cpus", "numbers of CPUs to use"}};
  for (const Fixed& fixed : kOfProcess) {
    std::set<std::string> base = process_values(comparison.base, fixed.fact);
    std::set<std::string> next = process_values(comparison.next, fixed.fact);
    if (base == next) continue;
    auto shown = [](const std::set<std::string>& values) {
      return values.empty() ? std::string("none") : joined(values);
    };
    out.push_back(fmt::format("different {}: {} and {}", fixed.what, shown(base), shown(next)));
  }
  std::set<std::string> base = process_values(comparison.base, "build");
  if (base.contains("debug") && process_values(comparison.next, "build").contains("debug"))
    out.push_back(
        "both sides are debug builds: what costs time there may cost none when optimised");
}

// Recorded and imported runs hold different things; so do runs with and without load.
void check_mixture(const Comparison& comparison, std::vector<std::string>& out) {
  size_t imported = 0, loaded = 0, all = 0, unfinished = 0;
  for (const Side* side : {&comparison.base, &comparison.next}) {
    for (const RunValues& run : side->runs) {
      ++all;
      imported += is_imported(run.run_kind) ? 1 : 0;
      loaded += run.load_measured ? 1 : 0;
      unfinished += run.info.finished ? 0 : 1;
    }
  }
  bool heap_alone =
      std::ranges::all_of(std::array{&comparison.base, &comparison.next}, [](const Side* side) {
        return std::ranges::all_of(
            side->runs, [](const RunValues& run) { return is_heap_alone(run.run_kind); });
      });
  if (imported > 0 && heap_alone) {
    out.push_back(
        "of imported heap profiles it is not known how long the program had run: what was "
        "allocated is compared as it is");
  } else if (imported == all) {
    out.push_back(
        "the runs were imported: their times are what the other profiler sampled, waits and load "
        "are not known");
  } else if (imported > 0) {
    out.push_back(fmt::format(
        "{} of {} runs were imported and the others recorded: machines, loads and builds are not "
        "known of all, times are not counted alike; only shares of the samples are compared",
        imported, all));
  }
  if (loaded > 0 && loaded < all && imported == 0)
    out.push_back(fmt::format("load was measured in {} of {} runs only: compared per {}", loaded,
                              all, per_name(comparison.per)));
  if (unfinished > 0)
    out.push_back(fmt::format("{} of {} captures did not come to their end", unfinished, all));
}

// A sampler of the heap costs time, and its rate decides what it sees.
void check_heap(const Comparison& comparison, std::vector<std::string>& out) {
  size_t with = 0, all = 0;
  std::set<double> rates;
  for (const Side* side : {&comparison.base, &comparison.next}) {
    for (const RunValues& run : side->runs) {
      ++all;
      if (!run.heap.present) continue;
      ++with;
      rates.insert(run.heap.rate_bytes);
    }
  }
  if (with > 0 && with < all)
    out.push_back(fmt::format(
        "the heap was sampled in {} of {} runs only: it is not compared, and it costs CPU time",
        with, all));
  if (rates.size() > 1) out.push_back("the heap was sampled at different rates");
}

void check_both_sides(const Comparison& comparison, std::vector<std::string>& out) {
  for (const RunValues& run : comparison.base.runs) {
    if (std::ranges::find(comparison.next.runs, run.path, &RunValues::path) !=
        comparison.next.runs.end())
      out.push_back(fmt::format("{} stands on both sides", run.path));
  }
}

bool any_build_is(const Side& side, const char* key) {
  for (const RunValues& run : side.runs) {
    for (const auto& [fact, value] : run.facts) {
      if (fact.ends_with(key) && (value == "yes" || value == "true" || value == "1")) return true;
    }
  }
  return false;
}

// One sentence for a fault of one run, and one for all of a side's.
void add_fault(const char* name, const Side& side, const std::function<bool(const RunValues&)>& has,
               const std::function<std::string(const RunValues&)>& text, const char* of_several,
               std::vector<std::string>& out) {
  auto count = std::ranges::count_if(side.runs, has);
  if (count == 0) return;
  const RunValues& first = *std::ranges::find_if(side.runs, has);
  if (count == 1) {
    out.push_back(fmt::format("{} {}", first.path, text(first)));
    return;
  }
  out.push_back(fmt::format("{} of {} runs of the {} side {}, the first {}: it {}", count,
                            side.runs.size(), name, of_several, first.path, text(first)));
}

void check_runs(const char* name, const Side& side, std::vector<std::string>& out) {
  add_fault(
      name, side, [](const RunValues& run) { return run.lost_share > 0.01; },
      [](const RunValues& run) {
        return fmt::format("lost {:.1f} % of its records", run.lost_share * 100);
      },
      "lost records", out);
  add_fault(
      name, side, [](const RunValues& run) { return run.failed_share() > 0.01; },
      [](const RunValues& run) {
        return fmt::format("has {:.1f} % of its requests failed", run.failed_share() * 100);
      },
      "have failed requests", out);
  add_fault(
      name, side, [](const RunValues& run) { return run.samples < 100; },
      [](const RunValues& run) { return fmt::format("has only {} on-CPU samples", run.samples); },
      "have few on-CPU samples", out);
  add_fault(
      name, side, [](const RunValues& run) { return run.verdict == VerdictKind::throttled; },
      [](const RunValues&) { return std::string("was throttled by its CPU quota"); },
      "were throttled", out);
  if (any_build_is(side, "generator_saturated")) {
    out.push_back(fmt::format(
        "the load generator was at its limit on the {} side: throughput may be the generator's",
        name));
  }
}

}  // namespace

std::vector<std::string> why_not_comparable(const Comparison& comparison) {
  std::vector<std::string> out;
  // What imported profiles were made of, and on what, is hardly ever known: one sentence says that.
  if (any_imported(comparison)) {
    check_mixture(comparison, out);
    return out;
  }
  check_both_sides(comparison, out);
  for (const Fixed& fixed : kFixed) {
    std::set<std::string> base = values_of(comparison.base, fixed.fact);
    std::set<std::string> next = values_of(comparison.next, fixed.fact);
    if (base == next) continue;
    out.push_back(fmt::format("different {}: {} and {}", fixed.what, joined(base), joined(next)));
  }
  check_processes(comparison, out);
  check_mixture(comparison, out);
  check_heap(comparison, out);
  std::set<std::string> backends, events;
  std::set<int64_t> periods;
  for (const Side* side : {&comparison.base, &comparison.next}) {
    for (const RunValues& run : side->runs) {
      backends.insert(run.info.backend);
      events.insert(run.info.oncpu_event);
      periods.insert(run.info.sample_period_ns);
    }
  }
  if (backends.size() > 1)
    out.push_back(fmt::format("runs of different backends: {}", fmt::join(backends, ", ")));
  if (events.size() > 1)
    out.push_back(fmt::format("sampled by different events: {}", fmt::join(events, ", ")));
  if (periods.size() > 1) out.push_back("sampled at different frequencies");
  check_runs("base", comparison.base, out);
  check_runs("new", comparison.next, out);
  return out;
}

}  // namespace assay::analysis
