#include "os/process/thread_snapshot.h"

#include <algorithm>

#include <sys/uio.h>

namespace assay::os {
namespace {

constexpr size_t kPage = 4096;

// How often the thread was given a CPU. schedstat costs a tenth of status, but not every kernel has
// it.
std::optional<uint64_t> times_run(const ProcFs& proc, pid_t pid, pid_t tid) {
  if (auto sched = proc.thread_schedstat(pid, tid)) return sched->timeslices;
  auto status = proc.thread_status(pid, tid);
  if (!status) return std::nullopt;
  return status->voluntary_switches + status->involuntary_switches;
}

// Copies up to `bytes` from `address`, page by page so that the end of the mapping cuts it short
// instead of failing it.
std::vector<std::byte> copy_stack(pid_t pid, uint64_t address, size_t bytes) {
  std::vector<std::byte> copy(bytes);
  std::vector<iovec> remote;
  for (uint64_t at = address; at < address + bytes;) {
    uint64_t next = std::min((at / kPage + 1) * kPage, address + bytes);
    remote.push_back({reinterpret_cast<void*>(at), next - at});
    at = next;
  }
  iovec local{copy.data(), copy.size()};
  ssize_t got = process_vm_readv(pid, &local, 1, remote.data(), remote.size(), 0);
  copy.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return copy;
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
  snapshot.stack = copy_stack(pid, snapshot.syscall.sp, max_stack_bytes);
  snapshot.time = monotonic_ns();
  if (times_run(proc, pid, tid) != before) return std::nullopt;
  return snapshot;
}

}  // namespace assay::os
