// What a blocked thread waits in, read without stopping or touching it.
//
// /proc/PID/task/TID/syscall gives the system call, the stack pointer and the instruction pointer
// of a blocked thread; process_vm_readv copies its stack. The thread may wake meanwhile, so the two
// are taken between two readings of how often it ran: if it moved, there is no snapshot. Threads:
// safe everywhere. Failures: nullopt when the thread runs, moved, ended, or may not be read.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "os/process/procfs.h"

namespace assay::os {

struct ThreadSnapshot {
  TimeNs time = 0;
  SyscallState syscall;          // number −1: blocked in a page fault or by a signal
  std::vector<std::byte> stack;  // from syscall.sp upwards; may be empty
};

std::optional<ThreadSnapshot> snapshot_blocked_thread(const ProcFs& proc, pid_t pid, pid_t tid,
                                                      size_t max_stack_bytes);

}  // namespace assay::os
