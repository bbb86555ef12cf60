// Gauge: a series of levels inside a window, where each value holds until the next point, and the
// last one for a moment. Pure; never fails.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "model/series.h"

namespace assay::analysis {

// Each absent where the window holds no point.
struct Gauge {
  std::optional<double> mean;
  std::optional<double> above_zero;  // share of the time
};

inline Gauge gauge_of(const std::vector<model::Point>& points, TimeNs begin, TimeNs end) {
  double above = 0, weighted = 0, whole = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].time < begin || points[i].time > end) continue;
    TimeNs until = i + 1 < points.size() ? std::min(points[i + 1].time, end) : points[i].time;
    double length = std::max<double>(1, static_cast<double>(until - points[i].time));
    whole += length;
    weighted += length * static_cast<double>(points[i].value);
    if (points[i].value > 0) above += length;
  }
  if (whole <= 0) return {};
  return {weighted / whole, above / whole};
}

}  // namespace assay::analysis
