#include "analysis/compare/functions/counted_parts.h"

#include <algorithm>

#include "analysis/profile/thread_counters.h"
#include "run/selection/chosen_threads.h"

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
  bool divided = false;  // a counter of a process of which only some threads are asked for
};

// How much of what a series counts belongs to the chosen threads.
class Owners {
 public:
  enum Chosen { none, some, all };

  Owners(const run::Contents& run, const std::vector<bool>& threads)
      : threads_(threads), processes_(run.processes.size()) {
    for (size_t i = 0; i < threads.size(); ++i) {
      uint32_t number = run.threads[i].process.value;
      whole_ = whole_ && threads[i];
      if (number >= processes_.size()) continue;
      ++processes_[number].threads;
      processes_[number].chosen += threads[i];
    }
  }
  Chosen of(const model::Series& series) const {
    if (whole_) return all;
    if (series.scope == thread) {
      return series.owner < threads_.size() && threads_[series.owner] ? all : none;
    }
    if (series.scope != process || series.owner >= processes_.size()) return none;
    const Count& count = processes_[series.owner];
    if (count.chosen == 0) return none;
    return count.chosen == count.threads ? all : some;
  }

 private:
  struct Count {
    size_t threads = 0;
    size_t chosen = 0;
  };
  const std::vector<bool>& threads_;
  std::vector<Count> processes_;
  bool whole_ = true;
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

Result<std::map<std::string, double>> read_counted_parts(const run::Reader& reader,
                                                         const run::Selection& selection) {
  const model::RunInfo& info = reader.contents().info;
  auto threads = run::choose_threads(selection, reader.contents());
  if (!threads) return std::unexpected(threads.error());
  Owners owners(reader.contents(), *threads);
  std::map<std::string, Sum> sums;
  for (const model::Series& series : reader.contents().series) {
    auto part = std::ranges::find_if(kParts, [&](const CountedPart& candidate) {
      return candidate.scope == series.scope && candidate.series == series.name;
    });
    if (part == std::end(kParts)) continue;
    Owners::Chosen chosen = owners.of(series);
    if (chosen == Owners::none) continue;
    Sum& sum = sums[part->id];
    sum.divided = sum.divided || chosen == Owners::some;
    auto points = reader.points(series.id);
    if (!points) return std::unexpected(points.error());
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
    if (sum.any && !sum.divided) out[id] = sum.value;
  }
  return out;
}

}  // namespace assay::analysis
