// WaitSites: which system call a thread waits in, on what, from the sample taken at its switch-out.
//
// perf's user registers lack the system call's number, so it is read off the kernel stack: the
// outermost kernel function that is a system call's entry, or one that only one call leads to. The
// call's first argument is still in the user's rdi.
// Threads: one owner. Failures: no system call when none is recognised (a page fault, an exiting
// thread, hidden kernel addresses).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <sys/types.h>

#include "capture/fd_kinds.h"
#include "capture/off_cpu.h"
#include "capture/perf/record.h"
#include "os/process/thread_snapshot.h"
#include "symbol/symbolizer.h"

namespace assay::evidence {

class WaitSites {
 public:
  // A thread of `pid` waits on the futex at `address`.
  using FutexSeen = std::function<void(pid_t pid, uint64_t address)>;

  WaitSites(const os::ProcFs& proc, symbol::Symbolizer& symbolizer, model::ModuleId kernel,
            FutexSeen futex_seen);

  capture::WaitSite site(pid_t pid, const capture::SampleRecord& sample, model::StackId stack,
                         TimeNs now);
  capture::WaitSite site(pid_t pid, const os::ThreadSnapshot& snapshot, model::StackId stack);
  // A system call that the registers told; kNoSyscall: none.
  capture::WaitSite site(pid_t pid, uint16_t syscall, uint64_t first_argument, model::StackId stack,
                         TimeNs now);
  void forget(pid_t pid) { fd_kinds_.forget(pid); }

 private:
  uint16_t syscall_at(uint64_t kernel_address);
  void describe(pid_t pid, uint16_t syscall, uint64_t first_argument, TimeNs now,
                capture::WaitSite& site);

  symbol::Symbolizer& symbolizer_;
  model::ModuleId kernel_;
  FutexSeen futex_seen_;
  capture::FdKinds fd_kinds_;
  std::unordered_map<uint64_t, uint16_t> syscall_by_address_;
};

// The system call that a kernel function belongs to: "__x64_sys_futex", "do_epoll_wait",
// "ep_poll"…; kNoSyscall when it tells none.
uint16_t syscall_of_kernel_function(std::string_view function);

// Whether the call's first argument is a file descriptor it may wait on.
bool takes_descriptor(uint16_t syscall);

}  // namespace assay::evidence
