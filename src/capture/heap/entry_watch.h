// EntryWatch: stops threads of a target at an address, and leaves no trace in its code.
//
// It uses the processor's breakpoints, by perf events of this process: they end with it, however it
// ends. A thread that reaches the address gets a signal before it executes the instruction there,
// and its tracer sees it stop. The signal must be one that programs ignore by default, because the
// tracer may be gone by then. Threads: one owner. Failures: a thread cannot be watched when the
// kernel has no free breakpoint, or does not permit it.
#pragma once

#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::capture {

class EntryWatch {
 public:
  EntryWatch(uint64_t address, int signal) : address_(address), signal_(signal) {}

  Result<void> add(pid_t tid);
  void end() { events_.clear(); }  // from now on no thread is stopped

 private:
  uint64_t address_;
  int signal_;
  std::vector<UniqueFd> events_;
};

}  // namespace assay::capture
