// top_down(): where a CPU's issue slots went: useful work, thrown-away work, waiting for
// instructions, waiting for data or units.
//
// Level 1 has four shares (five with another thread's slots on Zen); level 2 divides them where the
// CPU counts what that needs. In: model::TopDownCounts. Out: shares 0–1; empty where the counters
// are missing or zero. Differences that multiplexing makes negative are held at 0. Formulas:
// Intel's published top-down method; AMD's pipeline utilisation (Processor Programming Reference,
// Zen 4 and 5), as perf's metrics have them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/top_down.h"

namespace assay::analysis {

struct TopDownShare {
  std::string_view id;    // "backend_memory"
  std::string_view name;  // "waiting for memory"
  int level = 1;
  double share = 0;  // of all slots
};

// Level 2 shares follow the level 1 share that they divide.
std::vector<TopDownShare> top_down(const model::TopDownCounts& counts);

// The dominant level 1 share in words; "" when none stands out.
std::string top_down_remark(const std::vector<TopDownShare>& shares);

}  // namespace assay::analysis
