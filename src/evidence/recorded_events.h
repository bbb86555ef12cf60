// RecordedEvents: what Recording must know of the events whose records it reads.
//
// In: ids and payloads of records. Out: what they mean. Threads: the consumer's. Failures: a
// payload that is too short tells nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <sys/types.h>

#include "capture/perf/record.h"
#include "capture/perf/sched_tracepoints.h"

namespace assay::evidence {

class RecordedEvents : public capture::EventIds {
 public:
  // Who an off-CPU sample switches from and to; nullopt when SWITCH records tell it.
  virtual std::optional<capture::SwitchTracepoint::Switch> switch_of(
      std::span<const std::byte> raw) const = 0;
  virtual pid_t woken_tid(std::span<const std::byte> raw) const = 0;  // −1: it does not tell
  virtual int64_t sample_period_ns() const = 0;
  virtual bool has_off_cpu_stacks() const = 0;
  // Every switch of a CPU is recorded there, so that one thread's going is the next one's coming.
  virtual bool sees_whole_cpus() const = 0;
  // Records that found their ring full, by the kernel's own count.
  virtual uint64_t lost_records() const = 0;
};

}  // namespace assay::evidence
