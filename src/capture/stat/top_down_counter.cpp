#include "capture/stat/top_down_counter.h"

#include <algorithm>
#include <map>

#include "capture/stat/counter_interval.h"

namespace assay::capture {

Result<void> TopDownCounter::open(const std::vector<pid_t>& tids, bool user_only) {
  Error refused{"the target has no threads", "", 0};
  for (pid_t tid : tids) {
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      int leader = -1;
      for (size_t e = 0; e < plan_.groups[g].size(); ++e) {
        perf_event_attr attr{};
        attr.size = sizeof attr;
        attr.type = plan_.type;
        attr.config = plan_.groups[g][e].config;
        attr.exclude_kernel = user_only ? 1 : 0;
        auto fd = kernel_.open(attr, tid, leader);
        if (!fd) {
          if (g == 0) refused = fd.error();
          if (leader < 0) break;  // a group needs its leader
          continue;
        }
        if (leader < 0) leader = fd->get();
        events_.push_back({g, e, std::move(*fd)});
      }
    }
  }
  bool any = std::ranges::any_of(events_, [](const Opened& event) { return event.group == 0; });
  if (!any) return std::unexpected(refused);
  return {};
}

TopDownCounter::Readings TopDownCounter::read() {
  Readings readings;
  readings.reserve(events_.size());
  for (const Opened& event : events_) {
    auto reading = kernel_.read(event.fd.get());
    readings.push_back(reading ? std::optional(*reading) : std::nullopt);
  }
  return readings;
}

model::TopDownCounts TopDownCounter::between(const Readings& before, const Readings& after) const {
  model::TopDownCounts out;
  out.method = plan_.method;
  out.slots_per_cycle = plan_.slots_per_cycle;
  CounterInterval first_group;
  std::map<std::string, CounterInterval> intervals;
  for (size_t i = 0; i < events_.size(); ++i) {
    if (!before[i] || !after[i]) continue;
    const Opened& event = events_[i];
    const PlannedEvent& planned = plan_.groups[event.group][event.event];
    CounterInterval& interval = intervals[planned.name];
    interval.add(*before[i], *after[i]);
    out.values[planned.name] = interval.value() * planned.scale;
    if (event.group == 0) first_group.add(*before[i], *after[i]);
  }
  std::erase_if(out.values,
                [&](const auto& entry) { return !intervals[entry.first].had_a_turn(); });
  if (!first_group.had_a_turn()) out.problem = "other events had the CPU's counters all this time";
  out.counted_share = first_group.share();
  return out;
}

}  // namespace assay::capture
