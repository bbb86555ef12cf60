#include "capture/stat/switch_counter.h"

namespace assay::capture {
namespace {

// The same distinction as in the kernel's own counts: a thread that was still runnable lost the
// CPU. 256 marks a preempted thread.
constexpr const char* kGaveUp = "prev_state > 0 && prev_state < 256";
constexpr const char* kTakenAway = "prev_state == 0 || prev_state >= 256";

}  // namespace

Result<SwitchCounter> SwitchCounter::open(os::CounterKernel& kernel, const std::vector<pid_t>& tids,
                                          TracepointNumber number) {
  auto tracepoint = number("sched/sched_switch");
  if (!tracepoint) return std::unexpected(tracepoint.error());
  SwitchCounter counter(kernel);
  for (pid_t tid : tids) {
    auto first = counter.add(*tracepoint, tid, kGaveUp, counter.voluntary_);
    auto second = first ? counter.add(*tracepoint, tid, kTakenAway, counter.involuntary_) : first;
    bool ended = !second && second.error().code == ESRCH;
    if (!second && !ended) return std::unexpected(second.error());
  }
  return counter;
}

Result<void> SwitchCounter::add(uint64_t tracepoint, pid_t tid, const char* filter,
                                std::vector<UniqueFd>& to) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_TRACEPOINT;
  attr.config = tracepoint;
  auto fd = kernel_->open(attr, tid, -1);
  if (!fd) return std::unexpected(fd.error());
  if (auto filtered = kernel_->filter(fd->get(), filter); !filtered) return filtered;
  to.push_back(std::move(*fd));
  return {};
}

uint64_t SwitchCounter::sum(const std::vector<UniqueFd>& events) const {
  uint64_t all = 0;
  for (const UniqueFd& fd : events) {
    auto reading = kernel_->read(fd.get());
    if (reading) all += reading->value;
  }
  return all;
}

SwitchCounts SwitchCounter::read() const {
  return {sum(voluntary_), sum(involuntary_)};
}

Result<SwitchCounter> open_switch_counter(const std::vector<pid_t>& tids) {
  return SwitchCounter::open(os::real_counter_kernel(), tids, number_in_tracefs);
}

}  // namespace assay::capture
