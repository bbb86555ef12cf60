#include "analysis/compare/comparability.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::analysis {
namespace {

struct Fixed {
  const char* fact;
  const char* what;
};
// Facts that should be the same on both sides.
constexpr Fixed kFixed[] = {{"host cpu_model", "CPU models"},
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

bool any_build_is(const Side& side, const char* key) {
  for (const RunValues& run : side.runs) {
    for (const auto& [fact, value] : run.facts) {
      if (fact.ends_with(key) && (value == "yes" || value == "true" || value == "1")) return true;
    }
  }
  return false;
}

void check_runs(const char* name, const Side& side, std::vector<std::string>& out) {
  for (const RunValues& run : side.runs) {
    if (run.lost_share > 0.01) {
      out.push_back(fmt::format("{} lost {:.1f} % of its records", run.path, run.lost_share * 100));
    }
    if (run.requests > 0 && run.errors > 0.01 * run.requests) {
      out.push_back(fmt::format("{}: {:.1f} % of its requests failed", run.path,
                                run.errors / run.requests * 100));
    }
    if (run.samples < 100) {
      out.push_back(fmt::format("{} has only {} on-CPU samples", run.path, run.samples));
    }
  }
  if (any_build_is(side, "generator_saturated")) {
    out.push_back(fmt::format(
        "the load generator was at its limit on the {} side: throughput may be the generator's",
        name));
  }
}

}  // namespace

std::vector<std::string> why_not_comparable(const Comparison& comparison) {
  std::vector<std::string> out;
  for (const Fixed& fixed : kFixed) {
    std::set<std::string> base = values_of(comparison.base, fixed.fact);
    std::set<std::string> next = values_of(comparison.next, fixed.fact);
    if (base == next) continue;
    auto shown = [](const std::set<std::string>& values) {
      return values.empty() ? std::string("unknown") : fmt::format("{}", fmt::join(values, ", "));
    };
    out.push_back(fmt::format("different {}: {} and {}", fixed.what, shown(base), shown(next)));
  }
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
