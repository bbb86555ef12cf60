// SwitchCounter: how often the target's threads gave up the CPU, and how often it was taken away.
//
// In: threads. Out: counts since open(), of those threads and of all that they create, living or
// ended. The kernel's switch tracepoint is counted twice, with a filter on the state of the thread
// that leaves the CPU. Threads: one owner. Failures: the kernel does not permit counting
// tracepoints; then /proc has the numbers of living threads.
#pragma once

#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "capture/stat/syscall_counter.h"
#include "os/events/counter_kernel.h"

namespace assay::capture {

struct SwitchCounts {
  uint64_t voluntary = 0, involuntary = 0;
};

class SwitchCounter {
 public:
  static Result<SwitchCounter> open(os::CounterKernel& kernel, const std::vector<pid_t>& tids,
                                    TracepointNumber number);
  SwitchCounts read() const;

 private:
  explicit SwitchCounter(os::CounterKernel& kernel) : kernel_(&kernel) {}
  Result<void> add(uint64_t tracepoint, pid_t tid, const char* filter, std::vector<UniqueFd>& to);
  uint64_t sum(const std::vector<UniqueFd>& events) const;

  os::CounterKernel* kernel_;
  std::vector<UniqueFd> voluntary_, involuntary_;
};

// With the tracepoint ids of this machine.
Result<SwitchCounter> open_switch_counter(const std::vector<pid_t>& tids);

}  // namespace assay::capture
