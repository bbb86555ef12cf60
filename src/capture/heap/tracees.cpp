#include "capture/heap/tracees.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/trace/target_memory.h"

namespace assay::capture {
namespace {

constexpr long kFollow =
    PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;
constexpr int64_t kReleaseNs = 2 * kNsPerSecond;
constexpr int64_t kAlarmNs = 5 * kNsPerMs;
constexpr uint8_t kInt3 = 0xcc;

// waitpid() has no deadline: a timer's signal interrupts it.
int alarm_signal() {
  return SIGRTMIN + 7;
}

void ignore_alarm(int) {}

// The timer; none: waiting has to look again and again. (Its number may well be 0.)
std::optional<timer_t> start_alarm() {
  struct sigaction action {};
  action.sa_handler = ignore_alarm;  // no SA_RESTART: waiting is to be interrupted
  sigaction(alarm_signal(), &action, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, alarm_signal());
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = alarm_signal();
  event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return std::nullopt;
  itimerspec often{{0, kAlarmNs}, {0, kAlarmNs}};
  timer_settime(timer, 0, &often, nullptr);
  return timer;
}

bool write_byte(pid_t pid, uint64_t address, uint8_t byte) {
  auto memory = os::TargetMemory::open(pid, os::TargetMemory::Access::write);
  return memory && memory->write(address, &byte, 1);
}

Error seize_error(pid_t pid, int code) {
  errno = code;
  Error error = fail_errno("process {} cannot be attached to", pid).error();
  if (code == EPERM) {
    error.remedy =
        "sudo assay heap …, or for processes of your own: sudo sysctl kernel.yama.ptrace_scope=0";
  }
  return error;
}

// Errors by which the kernel marks a call that it will take up again.
constexpr int64_t kRestartSys = -512, kRestartNoIntr = -513, kRestartNoHand = -514,
                  kRestartBlock = -516;

constexpr uint64_t kTrapBit = uint64_t{1} << (SIGTRAP - 1);

// A set of signals as the kernel tells it of a thread.
uint64_t signals_in(const os::ProcFs& proc, pid_t pid, pid_t tid, const char* field) {
  auto status = proc.read(fmt::format("{}/task/{}/status", pid, tid));
  size_t at = status ? status->find(field) : std::string::npos;
  if (at == std::string::npos) return 0;
  return std::strtoull(status->c_str() + at + std::strlen(field), nullptr, 16);
}

// Whether a call that returns EINTR has changed nothing, so that it can be made once more.
bool may_begin_again(int64_t number) {
  return number != SYS_close && number != SYS_connect;
}

}  // namespace

bool in_restartable_syscall(const user_regs_struct& registers) {
  auto number = static_cast<int64_t>(registers.orig_rax);
  auto result = static_cast<int64_t>(registers.rax);
  if (number < 0) return false;
  bool by_kernel = result == kRestartSys || result == kRestartNoIntr || result == kRestartNoHand ||
                   result == kRestartBlock;
  return by_kernel || (result == -EINTR && may_begin_again(number));
}

bool begin_call_again(pid_t pid, pid_t tid, uint64_t mask, user_regs_struct& registers) {
  auto number = static_cast<int64_t>(registers.orig_rax);
  if (number < 0 || !may_begin_again(number) || static_cast<int64_t>(registers.rax) != -EINTR)
    return false;
  os::ProcFs proc;
  uint64_t pending =
      signals_in(proc, pid, tid, "SigPnd:\t") | signals_in(proc, pid, tid, "ShdPnd:\t");
  if ((pending & ~mask) != 0) return false;  // a handler is to run, and EINTR is right
  begin_call_anew(registers);
  return true;
}

void begin_call_anew(user_regs_struct& registers) {
  if (!in_restartable_syscall(registers)) return;
  registers.rax = registers.orig_rax;
  registers.rip -= 2;
  registers.orig_rax = static_cast<unsigned long long>(-1);
}

Result<void> Breakpoint::insert() {
  auto memory = os::TargetMemory::open(pid_, os::TargetMemory::Access::write);
  if (!memory || !memory->read(address_, &original_, 1)) {
    return fail_errno("the code of process {} cannot be read", pid_);
  }
  if (original_ == kInt3) return fail("another tracer has a breakpoint at malloc in {}", pid_);
  if (!memory->write(address_, &kInt3, 1))
    return fail_errno("no breakpoint can be set in process {}", pid_);
  inserted_ = true;
  return {};
}

bool Breakpoint::remove() {
  if (!inserted_) return true;
  inserted_ = !write_byte(pid_, address_, original_);
  return !inserted_;
}

void Breakpoint::remove_from(pid_t copy) const {
  if (original_ != 0) write_byte(copy, address_, original_);
}

Tracees::Tracees(const os::ProcFs& proc, pid_t pid)
    : proc_(proc), pid_(pid), alarm_(start_alarm()) {}

Tracees::~Tracees() {
  release_all();
  if (alarm_) timer_delete(*alarm_);
}

// A thread that was born of a traced one is traced from its birth, and tells wait() of itself.
bool Tracees::is_ours(pid_t tid) const {
  auto status = proc_.read(fmt::format("{}/task/{}/status", pid_, tid));
  return status && status->find(fmt::format("TracerPid:\t{}\n", getpid())) != std::string::npos;
}

// A thread that is exiting gives EPERM, as one that may not be traced does; but a moment later it
// is gone.
Result<bool> Tracees::try_seize(pid_t tid, long options) {
  constexpr int kLooks = 10;
  constexpr useconds_t kLookUs = 500;
  for (int look = 0; look < kLooks; ++look) {
    if (os::seize_thread(tid, options)) {
      seized_.insert(tid);
      return true;
    }
    if (errno == ESRCH) return false;
    if (errno != EPERM) return std::unexpected(seize_error(pid_, errno));
    auto stat = proc_.thread_stat(pid_, tid);
    if (!stat || stat->state == 'Z' || stat->state == 'X' || is_ours(tid)) return false;
    usleep(kLookUs);
  }
  return std::unexpected(seize_error(pid_, EPERM));
}

Result<bool> Tracees::seize(pid_t tid) {
  if (seized_.contains(tid)) return true;
  return try_seize(tid, 0);
}

// Threads may start while others are seized: the list is read again until it has no new one.
Result<void> Tracees::seize_all() {
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    bool found = false;
    for (pid_t tid : proc_.tids(pid_)) {
      if (seized_.contains(tid)) continue;
      auto taken = try_seize(tid, kFollow);
      if (!taken) return std::unexpected(taken.error());
      if (!*taken) continue;
      if (signals_in(proc_, pid_, tid, "SigBlk:\t") & kTrapBit) trap_blocked_.insert(tid);
      found = true;
    }
    if (!found) return {};
  }
  return {};
}

bool Tracees::interrupt(pid_t tid) {
  return os::interrupt_thread(tid);
}

bool Tracees::resume(pid_t tid, os::Resume how, int signal) {
  stopped_.erase(tid);
  return os::resume_thread(tid, how, signal);
}

void Tracees::release(pid_t tid, int signal) {
  resume(tid, os::Resume::detach, signal);
  seized_.erase(tid);
}

// A child that was forked while the breakpoint stood has a copy of it. (After vfork the memory is
// the parent's own: then the breakpoint itself must go.)
void Tracees::let_go_child(pid_t child) {
  if (breakpoint_ != nullptr) breakpoint_->remove_from(child);
  os::resume_thread(child, os::Resume::detach);
  children_.erase(child);
}

bool Tracees::at_breakpoint(pid_t tid) const {
  user_regs_struct registers{};
  return breakpoint_ != nullptr && os::read_registers(tid, registers) &&
         registers.rip == breakpoint_->address() + 1;
}

bool Tracees::at_entry(pid_t tid, int signal) const {
  user_regs_struct registers{};
  return signal == entry_.signal && signal != 0 && os::read_registers(tid, registers) &&
         registers.rip == entry_.address;
}

bool Tracees::takes_signal(pid_t tid, int signal) const {
  return (signals_in(proc_, pid_, tid, "SigBlk:\t") >> (signal - 1) & 1) == 0;
}

std::optional<Tracees::Event> Tracees::wait(TimeNs deadline) {
  while (!gone_) {
    int status = 0;
    // Of this thread's tracees alone: others of Assay's children are none of our business.
    int patience = alarm_ ? 0 : WNOHANG;
    pid_t tid = waitpid(-1, &status, __WALL | __WNOTHREAD | patience);
    if (tid > 0) {
      auto event = sort_out(tid, status);
      if (event) stopped_.insert_or_assign(event->tid, *event);
      if (event) return event;
      continue;
    }
    if (tid < 0 && errno == ECHILD) gone_ = true;
    if (monotonic_ns() >= deadline) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Tracees::Event> Tracees::sort_out(pid_t tid, int status) {
  if (!WIFSTOPPED(status)) {
    seized_.erase(tid);
    if (!releasing_ && (seized_.empty() || tid == owned_)) gone_ = true;
    return std::nullopt;
  }
  int signal = WSTOPSIG(status);
  int event = status >> 16;
  if (event == PTRACE_EVENT_STOP) {
    bool is_child = children_.contains(tid) || !seized_.contains(tid);
    if (is_child) {
      auto stat = proc_.thread_stat(pid_, tid);
      if (stat && releasing_) {
        release(tid);
      } else if (stat) {
        seized_.insert(tid);  // a thread that was born
        resume(tid, os::Resume::run);
      } else {
        let_go_child(tid);
      }
      return std::nullopt;
    }
    if (signal != SIGTRAP) {  // a job-control stop
      // A call under way goes on, whatever it holds must not stay held: the kernel stops the
      // thread when it is let go, unless the process was continued meanwhile.
      if (tid == owned_) return Event{tid, Stop::interrupted, 0};
      if (tells_stops_ != nullptr) *tells_stops_ = true;
      if (releasing_)
        release(tid);  // and stays stopped
      else
        os::resume_thread(tid, os::Resume::listen);
      return std::nullopt;
    }
    return Event{tid, Stop::interrupted, 0};
  }
  if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK) {
    unsigned long child = os::event_message(tid);
    if (event == PTRACE_EVENT_VFORK && breakpoint_ != nullptr) breakpoint_->remove();
    children_.insert(static_cast<pid_t>(child));
    resume(tid, os::Resume::run);
    return std::nullopt;
  }
  if (event != 0) {  // clone, exec
    if (event == PTRACE_EVENT_EXEC && breakpoint_ != nullptr) breakpoint_->forget();
    resume(tid, os::Resume::run);
    return std::nullopt;
  }
  if (signal == SIGTRAP && at_breakpoint(tid)) return Event{tid, Stop::breakpoint, signal};
  if (tid != owned_ && at_entry(tid, signal)) return Event{tid, Stop::breakpoint, signal};
  if (tid == owned_) return Event{tid, Stop::signal, signal};
  resume(tid, os::Resume::run, signal);
  return std::nullopt;
}

bool Tracees::others_are_stopped(pid_t tid) const {
  for (pid_t other : proc_.tids(pid_)) {
    if (other == tid) continue;
    auto stat = proc_.thread_stat(pid_, other);
    if (stat && stat->state == 'T') return true;
  }
  return false;
}

bool Tracees::breakpoints_harm() const {
  bool caught = (signals_in(proc_, pid_, pid_, "SigCgt:\t") & kTrapBit) != 0;
  return caught && !trap_blocked_.empty();
}

void Tracees::step_back(pid_t tid) {
  user_regs_struct registers{};
  if (breakpoint_ == nullptr || !os::read_registers(tid, registers)) return;
  registers.rip = breakpoint_->address();
  os::write_registers(tid, registers);
  uint64_t mask = 0;
  if (!blocked_trap(tid) || !os::read_signal_mask(tid, mask)) return;
  mask |= kTrapBit;
  os::write_signal_mask(tid, mask);
}

void Tracees::let_go_stopped(const Event& event) {
  // The thread ran into the breakpoint, and the kernel reported our interrupt first. The trap is
  // still to come, and the program must not get it.
  if (event.stop == Stop::interrupted && at_breakpoint(event.tid) &&
      (signals_in(proc_, pid_, event.tid, "SigPnd:\t") & kTrapBit) != 0) {
    resume(event.tid, os::Resume::run);
    return;
  }
  user_regs_struct registers{};
  uint64_t mask = 0;
  bool known = os::read_registers(event.tid, registers) && os::read_signal_mask(event.tid, mask);
  if (known && event.stop == Stop::breakpoint) step_back(event.tid);
  if (known && event.stop == Stop::interrupted &&
      begin_call_again(pid_, event.tid, mask, registers)) {
    os::write_registers(event.tid, registers);
  }
  // An interrupt that is still to come is forgotten with it.
  release(event.tid, event.stop == Stop::signal ? event.signal : 0);
}

void Tracees::release_all() {
  owned_ = 0;
  // Threads that were handed to the injector and not taken are stopped now.
  for (const auto& [tid, event] : std::map<pid_t, Event>(stopped_)) let_go_stopped(event);
  for (pid_t tid : std::set<pid_t>(seized_)) interrupt(tid);
  releasing_ = true;
  gone_ = false;
  TimeNs deadline = monotonic_ns() + kReleaseNs;
  // Until the kernel says that no thread is traced any more: a thread that started seized may not
  // be known yet when the last known one ends.
  while (!gone_) {
    auto event = wait(deadline);
    if (!event) break;
    let_go_stopped(*event);
  }
}

}  // namespace assay::capture
