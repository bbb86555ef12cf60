// TopDownCounts: the raw counters that say how a CPU's issue slots were used.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace assay::model {

enum class TopDownMethod : uint8_t {
  none,
  intel_metrics,  // Ice Lake and later: the hardware divides the slots itself
  intel_slots,    // before: from bubbles and issued slots
  zen,            // Zen 4 and later
};

struct TopDownCounts {
  TopDownMethod method = TopDownMethod::none;
  double slots_per_cycle = 0;            // Zen
  std::map<std::string, double> values;  // by event, scaled to the whole time
  double counted_share = 1;  // share of the time counted, of the group that counted least
  std::string problem;       // why there are none
};

}  // namespace assay::model
