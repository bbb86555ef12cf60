#include "formats/export/metric.h"

#include <algorithm>
#include <array>

#include "base/units.h"

namespace assay::formats {
namespace {

struct Row {
  std::string_view name;
  std::string_view title;
  bool is_time;
  bool is_space = false;
};
constexpr std::array<Row, kMetricCount> kRows{{{"cpu", "On-CPU time", true},
                                               {"off", "Off-CPU time", true},
                                               {"wall", "Wall time of threads", true},
                                               {"lock", "Time waiting for locks", true},
                                               {"runqueue", "Time waiting for a CPU", true},
                                               {"samples", "On-CPU samples", false},
                                               {"waits", "Waits", false},
                                               {"inuse_space", "Live heap", false, true},
                                               {"inuse_objects", "Live objects", false},
                                               {"alloc_space", "Allocated bytes", false, true},
                                               {"alloc_objects", "Allocations", false}}};

const Row& row(Metric metric) {
  return kRows[static_cast<size_t>(metric)];
}

}  // namespace

std::string_view metric_name(Metric metric) {
  return row(metric).name;
}
std::string_view metric_title(Metric metric) {
  return row(metric).title;
}
bool is_time(Metric metric) {
  return row(metric).is_time;
}

bool is_heap(Metric metric) {
  return metric >= Metric::inuse_space;
}
std::string_view metric_unit(Metric metric) {
  return row(metric).is_time ? "nanoseconds" : row(metric).is_space ? "bytes" : "count";
}
std::string metric_value(Metric metric, int64_t value) {
  if (row(metric).is_time) return format_duration(value);
  auto count = static_cast<uint64_t>(std::max<int64_t>(value, 0));
  return row(metric).is_space ? format_bytes(count) : format_count(count);
}

std::optional<Metric> parse_metric(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<Metric>(i);
  }
  return std::nullopt;
}

}  // namespace assay::formats
