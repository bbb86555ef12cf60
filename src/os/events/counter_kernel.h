// CounterKernel: the door to perf_event_open(2) for counting, without rings.
//
// Tests hand in a fake that answers with recorded numbers. Threads: safe everywhere.
// Failures: the kernel's errno, kept in Error::code.
#pragma once

#include <cstdint>

#include <linux/perf_event.h>
#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::os {

struct CounterReading {
  uint64_t value = 0;
  uint64_t enabled_ns = 0;  // how long it was wanted
  uint64_t running_ns = 0;  // how long it counted; less where events share the hardware in turns
};

class CounterKernel {
 public:
  virtual ~CounterKernel() = default;
  // Counts for one thread on every CPU, and for all that it creates from now on. `leader`: the
  // event to be scheduled together with; −1 for none.
  virtual Result<UniqueFd> open(const perf_event_attr& attr, pid_t tid, int leader) = 0;
  virtual Result<CounterReading> read(int fd) = 0;
  // Counts only what fits, from then on: an expression on a tracepoint's fields.
  virtual Result<void> filter(int fd, const char* expression) = 0;
};

CounterKernel& real_counter_kernel();

}  // namespace assay::os
