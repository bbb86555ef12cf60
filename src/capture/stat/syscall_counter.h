// SyscallCounter: counts the target's system calls by number.
//
// It uses a BPF program at the entry of every call (all names, children included) where permitted;
// else the kernel's tracepoints (the sum, and the most common calls of servers). In: processes and
// their threads. Out: counts since open(), by number. The program costs about 0.1 µs for each
// system call on the machine while it is attached. Threads: one owner. Failures: an Error that says
// why neither can be used.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "os/events/counter_kernel.h"

namespace assay::capture {

struct SyscallCalls {
  uint64_t all = 0;
  std::map<uint32_t, uint64_t>
      by_number;  // may add up to less than `all` where not every call is counted by name
};

class SyscallCounter {
 public:
  virtual ~SyscallCounter() = default;
  virtual SyscallCalls read() = 0;
  virtual const char* source() const = 0;  // "BPF", "tracepoints: only common calls by name"
};

Result<std::unique_ptr<SyscallCounter>> open_bpf_syscall_counter(const std::vector<pid_t>& pids);

// The tracepoint's number for "syscalls/sys_enter_read"; a test passes its own.
using TracepointNumber = Result<uint64_t> (*)(const std::string& name);
Result<uint64_t> number_in_tracefs(const std::string& name);
Result<std::unique_ptr<SyscallCounter>> open_traced_syscall_counter(os::CounterKernel& kernel,
                                                                    const std::vector<pid_t>& tids,
                                                                    TracepointNumber number);

// The better counter of the two that is permitted.
Result<std::unique_ptr<SyscallCounter>> open_syscall_counter(const std::vector<pid_t>& pids,
                                                             const std::vector<pid_t>& tids);

}  // namespace assay::capture
