#include "os/process/thread_snapshot.h"

#include "os/process/target_memory.h"

namespace assay::os {
namespace {

// How often the thread was given a CPU. schedstat costs a tenth of status, but not every kernel has
// it.
std::optional<uint64_t> times_run(const ProcFs& proc, pid_t pid, pid_t tid) {
  if (auto sched = proc.thread_schedstat(pid, tid)) return sched->timeslices;
  auto status = proc.thread_status(pid, tid);
  if (!status) return std::nullopt;
  return status->voluntary_switches + status->involuntary_switches;
}

}  // namespace

std::optional<ThreadSnapshot> snapshot_blocked_thread(const ProcFs& proc, pid_t pid, pid_t tid,
                                                      size_t max_stack_bytes) {
  auto before = times_run(proc, pid, tid);
  if (!before) return std::nullopt;
  auto syscall = proc.syscall(pid, tid);
  if (!syscall || !*syscall) return std::nullopt;
  ThreadSnapshot snapshot;
  snapshot.syscall = **syscall;
  snapshot.stack.resize(max_stack_bytes);
  snapshot.stack.resize(read_target(pid, snapshot.syscall.sp, snapshot.stack));
  snapshot.time = monotonic_ns();
  if (times_run(proc, pid, tid) != before) return std::nullopt;
  return snapshot;
}

}  // namespace assay::os
