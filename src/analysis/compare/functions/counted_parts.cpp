#include "analysis/compare/functions/counted_parts.h"

#include <algorithm>

#include "analysis/profile/thread_counters.h"

namespace assay::analysis {
namespace {

using enum model::SeriesScope;

constexpr double kMiB = 1.0 / (1024 * 1024);

constexpr CountedPart kParts[] = {
    {"voluntary_switches", "switches, gave up the CPU", "", "counters", thread,
     "voluntary_switches", false, 1},
    {"involuntary_switches", "switches, CPU taken away", "", "counters", thread,
     "involuntary_switches", false, 1},
    {"migrations", "moves to another CPU", "", "counters", thread, "migrations", false, 1},
    {"cycles", "cycles", "", "counters", process, "cycles", false, 1},
    {"instructions", "instructions", "", "counters", process, "instructions", false, 1},
    {"branch_misses", "branches mispredicted", "", "counters", process, "branch_misses", false, 1},
    {"llc_misses", "last-level cache misses", "", "counters", process, "llc_misses", false, 1},
    {"minor_faults", "page faults without disk", "", "counters", process, "minor_faults", false, 1},
    {"major_faults", "page faults from disk", "", "counters", process, "major_faults", false, 1},
    {"bytes_written", "bytes to storage", "B", "counters", process, "write_bytes", false, 1},
    {"bytes_read", "bytes from storage", "B", "counters", process, "read_bytes", false, 1},
    {"rss", "memory in use (RSS)", "MiB", "memory", process, "rss", true, kMiB},
};

struct Sum {
  double value = 0;
  bool any = false;
};

double highest(const std::vector<model::Point>& points, const model::RunInfo& info) {
  int64_t most = 0;
  for (const model::Point& point : points) {
    if (point.time >= info.window_begin_ns && point.time <= info.window_end_ns)
      most = std::max(most, point.value);
  }
  return static_cast<double>(most);
}

}  // namespace

std::span<const CountedPart> counted_parts() {
  return kParts;
}

Result<std::map<std::string, double>> read_counted_parts(const run::Reader& reader) {
  const model::RunInfo& info = reader.contents().info;
  std::map<std::string, Sum> sums;
  for (const model::Series& series : reader.contents().series) {
    auto part = std::ranges::find_if(kParts, [&](const CountedPart& candidate) {
      return candidate.scope == series.scope && candidate.series == series.name;
    });
    if (part == std::end(kParts)) continue;
    auto points = reader.points(series.id);
    if (!points) return std::unexpected(points.error());
    Sum& sum = sums[part->id];
    if (part->level) {
      sum.value += highest(*points, info) * part->scale;
      sum.any = true;
    } else if (auto growth = growth_of(*points, info.window_begin_ns, info.window_end_ns)) {
      sum.value += static_cast<double>(growth->by) * part->scale;
      sum.any = true;
    }
  }
  std::map<std::string, double> out;
  for (const auto& [id, sum] : sums) {
    if (sum.any) out[id] = sum.value;
  }
  return out;
}

}  // namespace assay::analysis
