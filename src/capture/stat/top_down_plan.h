// plan_top_down(): which events this CPU needs for top-down analysis, in the groups that must count
// together.
//
// Intel: the events that the kernel names (slots and topdown-*; topdown-total-slots and its kin on
// older cores). AMD: Zen 4 and 5 by their event numbers. In: os::Pmu. Out: groups, leaders first.
// Failures: a CPU whose method is not known. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/top_down.h"
#include "os/machine/pmu.h"

namespace assay::capture {

struct PlannedEvent {
  std::string name;
  uint64_t config = 0;
  double scale = 1;
};

struct TopDownPlan {
  model::TopDownMethod method = model::TopDownMethod::none;
  uint32_t type = 0;  // of all events
  double slots_per_cycle = 0;
  std::vector<std::vector<PlannedEvent>> groups;
};

Result<TopDownPlan> plan_top_down(const os::Pmu& pmu);

}  // namespace assay::capture
