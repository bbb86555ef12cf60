#include "analysis/profile/counter_ratios.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::analysis {
namespace {

using model::CounterId;

struct Recipe {
  const char* id;
  const char* name;
  CounterId part, whole;
  bool is_share;
  double scale;
};

using enum model::CounterId;

constexpr Recipe kRecipes[] = {
    {"ipc", "instructions per cycle", instructions, cycles, false, 1},
    {"branch_miss_share", "branches mispredicted", branch_misses, branches, true, 1},
    {"branch_mpki", "mispredictions per 1,000 instructions", branch_misses, instructions, false,
     1000},
    {"l1d_miss_share", "L1 data loads missed", l1d_misses, l1d_loads, true, 1},
    {"llc_miss_share", "last-level loads missed", llc_misses, llc_loads, true, 1},
    {"dtlb_miss_share", "TLB loads missed", dtlb_misses, dtlb_loads, true, 1},
};

constexpr double kIdleCpus = 0.05;

}  // namespace

std::vector<CounterRatio> counter_ratios(const model::Counts& counts) {
  std::vector<CounterRatio> ratios;
  for (const Recipe& recipe : kRecipes) {
    const model::Count& part = count_of(counts, recipe.part);
    const model::Count& whole = count_of(counts, recipe.whole);
    if (!part.counted || !whole.counted || whole.value <= 0) continue;
    ratios.push_back({recipe.id, recipe.name, part.value / whole.value * recipe.scale,
                      recipe.is_share, std::min(part.counted_share, whole.counted_share)});
  }
  return ratios;
}

std::string idle_remark(const model::Counts& counts, double seconds) {
  const model::Count& clock = count_of(counts, cpu_clock);
  if (!clock.counted || seconds <= 0) return "";
  double cpus = clock.value / 1e9 / seconds;
  if (cpus >= kIdleCpus) return "";
  return fmt::format(
      "it used {:.2f} % of one CPU: these are the counters of an idle server, and say nothing "
      "about "
      "it under load",
      cpus * 100);
}

}  // namespace assay::analysis
