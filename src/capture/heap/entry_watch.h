// EntryWatch: stops threads of a target at an address, and leaves no trace in its code.
//
// The processor's own breakpoints, by perf events that belong to us: they are gone with us,
// whatever ends us. A thread that comes to the address is sent a signal at once, before the
// instruction there: its tracer sees it stop. The signal must be one that ends nobody: should the
// tracer be gone, it is nothing. Threads: one owner. Failures: threads cannot be watched where the
// kernel has no such breakpoint to give, or we no permission.
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
  void end() { events_.clear(); }  // who comes to the address now is not stopped

 private:
  uint64_t address_;
  int signal_;
  std::vector<UniqueFd> events_;
};

}  // namespace assay::capture
