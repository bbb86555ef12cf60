// PerfEvents: an EventSet, as evidence/ asks and steers it.
//
// Threads: the questions by the consumer; the SwitchStacks half reopens events, so its callers and
// the thread that closes events take turns. Failures: an event that cannot be opened anew goes on
// as it was.
#pragma once

#include "capture/perf/event_set.h"
#include "evidence/recorded_events.h"
#include "evidence/stacks/stack_policy.h"

namespace assay::session {

class PerfEvents final : public evidence::RecordedEvents, public evidence::SwitchStacks {
 public:
  explicit PerfEvents(capture::EventSet& events) : events_(events) {}

  capture::EventKind kind_of(uint64_t id) const override { return events_.kind_of(id); }
  std::optional<capture::SwitchTracepoint::Switch> switch_of(
      std::span<const std::byte> raw) const override {
    return events_.switch_of(raw);
  }
  pid_t woken_tid(std::span<const std::byte> raw) const override { return events_.woken_tid(raw); }
  int64_t sample_period_ns() const override { return events_.sample_period_ns(); }
  bool has_off_cpu_stacks() const override { return events_.has_off_cpu_stacks(); }
  bool sees_whole_cpus() const override { return events_.tier() == capture::Tier::per_cpu; }
  uint64_t lost_records() const override { return events_.lost_records(); }

  uint32_t copy_bytes() const override { return events_.off_cpu_copy_bytes(); }
  bool user_chain() const override { return events_.off_cpu_user_chain(); }
  void set(uint32_t copy_bytes, bool user_chain) override {
    (void)events_.set_off_cpu_stacks(copy_bytes, user_chain);
  }
  bool can_be_bare() const override { return events_.has_bare_switches(); }
  void record_kernel_part(bool on) override { events_.record_kernel_stacks_of_switches(on); }

 private:
  capture::EventSet& events_;
};

}  // namespace assay::session
