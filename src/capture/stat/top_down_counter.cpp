#include "capture/stat/top_down_counter.h"

#include <algorithm>

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
          if (leader < 0) break;  // a group without its leader is no group
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

model::TopDownCounts TopDownCounter::read() {
  model::TopDownCounts out;
  out.method = plan_.method;
  out.slots_per_cycle = plan_.slots_per_cycle;
  double wanted = 0, counted = 0;
  for (const Opened& event : events_) {
    auto reading = kernel_.read(event.fd.get());
    if (!reading) continue;
    const PlannedEvent& planned = plan_.groups[event.group][event.event];
    double& value = out.values[planned.name];
    if (event.group == 0) {
      wanted += static_cast<double>(reading->enabled_ns);
      counted += static_cast<double>(reading->running_ns);
    }
    if (reading->running_ns == 0) continue;
    value += static_cast<double>(reading->value) * planned.scale *
             static_cast<double>(reading->enabled_ns) / static_cast<double>(reading->running_ns);
  }
  if (wanted > 0) out.counted_share = counted / wanted;
  return out;
}

model::TopDownCounts top_down_between(const model::TopDownCounts& before,
                                      const model::TopDownCounts& after) {
  model::TopDownCounts out = after;
  for (auto& [name, value] : out.values) {
    auto then = before.values.find(name);
    if (then != before.values.end()) value = std::max(0.0, value - then->second);
  }
  return out;
}

}  // namespace assay::capture
