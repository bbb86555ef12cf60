#include "formats/metric.h"

#include <array>

namespace assay::formats {
namespace {

struct Row {
  std::string_view name;
  std::string_view title;
  bool is_time;
};
constexpr std::array<Row, kMetricCount> kRows{{{"cpu", "On-CPU time", true},
                                               {"off", "Off-CPU time", true},
                                               {"wall", "Wall time of threads", true},
                                               {"lock", "Time waiting for locks", true},
                                               {"runqueue", "Time waiting for a CPU", true},
                                               {"samples", "On-CPU samples", false},
                                               {"waits", "Waits", false}}};

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

std::optional<Metric> parse_metric(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<Metric>(i);
  }
  return std::nullopt;
}

}  // namespace assay::formats
