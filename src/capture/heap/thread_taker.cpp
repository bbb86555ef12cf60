#include "capture/heap/thread_taker.h"

#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

#include "capture/heap/entry_watch.h"
#include "capture/heap/seccomp_filter.h"

namespace assay::capture {
namespace {

constexpr int64_t kFindNs = 10 * kNsPerSecond;   // until a thread stands where it may be taken
constexpr int64_t kAtMallocNs = 200 * kNsPerMs;  // then blocked threads are looked for again
constexpr int64_t kInterruptNs = 200 * kNsPerMs;
constexpr useconds_t kFutexLookUs = 20'000;

// A thread that waits in one of these holds no lock of the allocator or the loader.
bool is_harmless_wait(const os::ProcFs& proc, pid_t pid, const os::SyscallState& call) {
  switch (call.number) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_accept:
    case SYS_accept4:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_wait4:
    case SYS_waitid:
      return true;
    case SYS_read: {  // of a file the loader may read
      auto link = proc.fd_link(pid, static_cast<int>(call.args[0]));
      return link && (link->starts_with("socket:") || link->starts_with("pipe:") ||
                      link->starts_with("anon_inode:") || link->starts_with("/dev/"));
    }
    default:
      return false;
  }
}

bool same_call(const os::SyscallState& a, const os::SyscallState& b) {
  return a.number == b.number && a.sp == b.sp && a.ip == b.ip && a.args[0] == b.args[0];
}

// Waiting threads, the safest first. A thread that waits for a futex may wait for a lock of the
// allocator, but not for as long as kFutexLookUs.
std::vector<pid_t> waiting_threads(const os::ProcFs& proc, pid_t pid) {
  std::vector<pid_t> waiting;
  std::vector<std::pair<pid_t, os::SyscallState>> futexes;
  constexpr size_t kEnough = 4;
  for (pid_t tid : proc.tids(pid)) {
    auto call = proc.syscall(pid, tid);
    if (!call || !*call) continue;
    if (is_harmless_wait(proc, pid, **call)) waiting.push_back(tid);
    // A wait that was interrupted before is taken up again under another number.
    bool is_doubtful = (*call)->number == SYS_futex || (*call)->number == SYS_restart_syscall;
    if (is_doubtful) futexes.emplace_back(tid, **call);
    if (waiting.size() >= kEnough) return waiting;
  }
  if (!waiting.empty() || futexes.empty()) return waiting;
  usleep(kFutexLookUs);
  for (const auto& [tid, before] : futexes) {
    auto call = proc.syscall(pid, tid);
    if (call && *call && same_call(**call, before)) waiting.push_back(tid);
    if (waiting.size() >= kEnough) break;
  }
  return waiting;
}

}  // namespace

Result<InjectPause> ThreadTaker::run(const Use& use) {
  TimeNs deadline = monotonic_ns() + kFindNs;
  while (monotonic_ns() < deadline && !is_abandoned_()) {
    for (pid_t tid : waiting_threads(proc_, plan_.pid)) {
      if (auto running = check_still_running(); !running) return std::unexpected(running.error());
      auto used = try_waiting(tid, use);
      if (!used) return std::unexpected(used.error());
      if (*used) return pause_;
    }
    if (auto running = check_still_running(); !running) return std::unexpected(running.error());
    auto used = try_malloc(use);
    if (!used) return std::unexpected(used.error());
    if (*used) return pause_;
  }
  return fail_with_remedy(
      fmt::format("no thread of process {} waited, or called malloc, within {} seconds: there "
                  "was no place to attach safely",
                  plan_.pid, kFindNs / kNsPerSecond),
      "try again under load, or start it with: assay heap -- COMMAND");
}

// A thread that was stopped under our eyes and let go takes a moment to be seen stopped.
Result<void> ThreadTaker::check_still_running() {
  constexpr int kLooks = 25;
  constexpr useconds_t kLookUs = 2'000;
  for (int look = 0; saw_stop_ && look < kLooks; ++look) {
    if (auto running = check_running(proc_, plan_.pid); !running) return running;
    usleep(kLookUs);
  }
  saw_stop_ = false;
  return check_running(proc_, plan_.pid);
}

// False: the thread went on before it could be taken.
Result<bool> ThreadTaker::try_waiting(pid_t tid, const Use& use) {
  Tracees tracees(proc_, plan_.pid);
  tracees.tell_stops(&saw_stop_);
  auto seized = tracees.seize(tid);
  if (!seized || !*seized) return seized;
  TimeNs begin = monotonic_ns();
  if (!tracees.interrupt(tid)) return false;
  auto event = tracees.wait(monotonic_ns() + kInterruptNs);
  if (!event || event->stop != Tracees::Stop::interrupted) return false;
  user_regs_struct registers{};
  if (!os::read_registers(tid, registers) || !in_restartable_syscall(registers)) return false;
  return take(tracees, {tid, 0, begin}, use);
}

// Where the processor can tell of a thread at malloc, nothing is changed in the target's code.
Result<bool> ThreadTaker::try_malloc(const Use& use) {
  Tracees tracees(proc_, plan_.pid);
  tracees.tell_stops(&saw_stop_);
  if (auto seized = tracees.seize_all(); !seized) return std::unexpected(seized.error());
  EntryWatch watch(plan_.malloc_entry, plan_.quiet_signal);
  tracees.watch_entry(plan_.malloc_entry, plan_.quiet_signal);
  size_t watched = 0;
  for (pid_t tid : tracees.seized())
    watched += tracees.takes_signal(tid, plan_.quiet_signal) && watch.add(tid) ? 1 : 0;
  if (watched > 0) {
    auto used = use_at_malloc(
        tracees, [&] { watch.end(); }, use);
    if (!used || *used || watched == tracees.seized().size()) return used;
  }
  return try_breakpoint(tracees, use);
}

Result<bool> ThreadTaker::try_breakpoint(Tracees& tracees, const Use& use) {
  if (tracees.breakpoints_harm()) return false;
  Breakpoint breakpoint(plan_.pid, plan_.malloc_entry);
  if (auto inserted = breakpoint.insert(); !inserted) return std::unexpected(inserted.error());
  tracees.watch(&breakpoint);
  auto used = use_at_malloc(
      tracees, [&] { breakpoint.remove(); }, use);
  tracees.release_all();  // while it may still look at the breakpoint
  tracees.watch(nullptr);
  return used;
}

Result<bool> ThreadTaker::use_at_malloc(Tracees& tracees, const std::function<void()>& end_watch,
                                        const Use& use) {
  auto event = tracees.wait(monotonic_ns() + kAtMallocNs);
  TimeNs begin = monotonic_ns();
  end_watch();
  if (!event || event->stop != Tracees::Stop::breakpoint) return false;
  return take(tracees, {event->tid, plan_.malloc_entry, begin}, use);
}

// The calls that are to be made must all be allowed: a filter may end the process at others.
Result<void> ThreadTaker::check_filters(pid_t tid) const {
  if (!plan_.is_filtered) return {};
  auto filters = read_filters(tid);
  if (!filters) return std::unexpected(forbidden_by_seccomp(plan_.pid, filters.error().what));
  std::string forbidden = first_forbidden(*filters);
  if (forbidden.empty()) return {};
  return std::unexpected(forbidden_by_seccomp(plan_.pid, "the filter does not allow " + forbidden));
}

Result<bool> ThreadTaker::take(Tracees& tracees, const Stopped& stopped, const Use& use) {
  if (auto allowed = check_filters(stopped.tid); !allowed) return std::unexpected(allowed.error());
  if (auto same = check_same_process(proc_, plan_); !same) return std::unexpected(same.error());
  if (HijackedThread::is_on_its_way_back(stopped.tid)) return false;
  // What it would have to call to be as it was may be what a filter ends it for.
  bool may_hurry = !plan_.is_filtered;
  HijackedThread thread(tracees, plan_.pid, stopped.tid, plan_.landing, plan_.quiet_signal,
                        may_hurry);
  Result<void> done = thread.take(stopped.rewind_to);
  if (done) done = use(thread);
  auto restored = thread.restore();
  pause_ = {monotonic_ns() - stopped.since, stopped.rewind_to != 0};
  if (!done) return std::unexpected(done.error());
  if (!restored) return std::unexpected(restored.error());
  return true;
}

}  // namespace assay::capture
