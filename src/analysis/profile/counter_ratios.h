// counter_ratios(): what counts say together: instructions per cycle, misses per access.
//
// In: counts of one time. Out: the ratios whose both sides were counted, each with the poorer of
// their shares of the time. Ratios are only made inside a group that is scheduled together. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/counters.h"

namespace assay::analysis {

struct CounterRatio {
  std::string id;    // "ipc"
  std::string name;  // "instructions per cycle"
  double value = 0;
  bool is_share = false;     // shown in percent
  double counted_share = 1;  // of the time
};

std::vector<CounterRatio> counter_ratios(const model::Counts& counts);

// Why numbers of this target say little: "" when they do not. `seconds` of wall time.
std::string idle_remark(const model::Counts& counts, double seconds);

}  // namespace assay::analysis
