// The events that `assay stat` counts, in the groups that are scheduled together.
//
// Events of a group count over the same time, so that ratios within it hold even when the hardware
// has fewer counters than events and the groups take turns. Static data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <linux/perf_event.h>

#include "model/counters.h"

namespace assay::capture {

using model::CounterId;
using model::kCounterCount;

struct CounterEvent {
  CounterId id;
  std::string_view name;  // "branch-misses": as perf calls it
  uint32_t type;
  uint64_t config;
  bool hardware;
};

// By CounterId.
std::span<const CounterEvent> counter_events();
const CounterEvent& counter_event(CounterId id);
// Groups of events; the first leads. Software events stand alone.
std::span<const std::span<const CounterId>> counter_groups();

perf_event_attr counter_attributes(const CounterEvent& event, bool user_only);

}  // namespace assay::capture
