// The scheduler's tracepoints on this kernel: event ids, and offsets of the fields in the payload.
//
// Read from tracefs; absent (id 0) where that cannot be read or has another layout. Payloads come
// from the kernel but are bounds-checked all the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <sys/types.h>

namespace assay::capture {

// sched:sched_switch.
struct SwitchTracepoint {
  // The threads that a switch is from and to.
  struct Switch {
    pid_t from = 0;
    pid_t to = 0;
    bool preempted = false;
  };

  uint64_t id = 0;
  uint32_t from_offset = 0;
  uint32_t to_offset = 0;
  uint32_t state_offset = 0;

  std::optional<Switch> parse(std::span<const std::byte> raw) const;
};

// sched:sched_waking.
struct WakingTracepoint {
  uint64_t id = 0;
  uint32_t pid_offset = 0;

  // The thread that is woken; −1 when the payload is too short.
  pid_t parse(std::span<const std::byte> raw) const;
};

SwitchTracepoint read_switch_tracepoint();
WakingTracepoint read_waking_tracepoint();

}  // namespace assay::capture
