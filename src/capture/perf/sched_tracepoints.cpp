#include "capture/perf/sched_tracepoints.h"

#include <algorithm>
#include <cstring>

#include "os/events/tracefs.h"

namespace assay::capture {

std::optional<SwitchTracepoint::Switch> SwitchTracepoint::parse(
    std::span<const std::byte> raw) const {
  constexpr uint64_t kRunnable = 0;       // yielded
  constexpr uint64_t kPreempted = 0x100;  // the kernel's TASK_REPORT_MAX
  size_t end = std::max({from_offset + 4, to_offset + 4, state_offset + 8});
  if (id == 0 || raw.size() < end) return std::nullopt;
  Switch change;
  uint64_t state = 0;
  std::memcpy(&change.from, raw.data() + from_offset, sizeof change.from);
  std::memcpy(&change.to, raw.data() + to_offset, sizeof change.to);
  std::memcpy(&state, raw.data() + state_offset, sizeof state);
  change.preempted = state == kRunnable || (state & kPreempted) != 0;
  return change;
}

pid_t WakingTracepoint::parse(std::span<const std::byte> raw) const {
  pid_t tid = -1;
  if (pid_offset != 0 && raw.size() >= pid_offset + sizeof tid) {
    std::memcpy(&tid, raw.data() + pid_offset, sizeof tid);
  }
  return tid;
}

SwitchTracepoint read_switch_tracepoint() {
  auto tracepoint = os::read_tracepoint("sched/sched_switch");
  if (!tracepoint) return {};
  auto& fields = tracepoint->fields;
  if (fields["prev_pid"].size != 4 || fields["next_pid"].size != 4 ||
      fields["prev_state"].size != 8)
    return {};
  return {tracepoint->id, fields["prev_pid"].offset, fields["next_pid"].offset,
          fields["prev_state"].offset};
}

WakingTracepoint read_waking_tracepoint() {
  auto tracepoint = os::read_tracepoint("sched/sched_waking");
  if (!tracepoint || !tracepoint->fields.contains("pid")) return {};
  return {tracepoint->id, tracepoint->fields["pid"].offset};
}

}  // namespace assay::capture
