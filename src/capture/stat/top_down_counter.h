// TopDownCounter: the events of a TopDownPlan, counted for a target's threads and all they create.
//
// A group that cannot be opened is left out, so level 2 may be missing while level 1 exists.
// Threads: one owner. Failures: no event of the first group can be opened.
#pragma once

#include <optional>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "capture/stat/top_down_plan.h"
#include "os/events/counter_kernel.h"

namespace assay::capture {

class TopDownCounter {
 public:
  TopDownCounter(os::CounterKernel& kernel, TopDownPlan plan)
      : kernel_(kernel), plan_(std::move(plan)) {}

  Result<void> open(const std::vector<pid_t>& tids, bool user_only);
  // One for each descriptor, in their order; none where it could not be read.
  using Readings = std::vector<std::optional<os::CounterReading>>;
  Readings read();
  // What was counted from one reading to the next, scaled by the turns of that time.
  model::TopDownCounts between(const Readings& before, const Readings& after) const;

 private:
  struct Opened {
    size_t group = 0, event = 0;
    UniqueFd fd;
  };

  os::CounterKernel& kernel_;
  TopDownPlan plan_;
  std::vector<Opened> events_;
};

}  // namespace assay::capture
