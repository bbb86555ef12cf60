#include "capture/heap/hijacked_thread.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <elf.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

namespace assay::capture {
namespace {

constexpr uint64_t kStackBytes = 96 << 10;
constexpr uint64_t kRedZone = 512;
constexpr uint64_t kTextBytes = 4096;  // at the stack's low end
constexpr uint64_t kReturnTo = 8192;   // offset in the stack, which is not code: coming there traps
constexpr int64_t kCallNs = 10 * kNsPerSecond;
constexpr int kMostUrgent = -20;
constexpr size_t kMostVectorBytes = 16 << 10;

// Those that a fault raises, by which calls come back and real faults are seen.
uint64_t all_but_faults() {
  uint64_t faults = 0;
  for (int signal : {SIGSEGV, SIGTRAP, SIGBUS, SIGILL, SIGFPE})
    faults |= uint64_t{1} << (signal - 1);
  return ~faults;
}

bool write_memory(pid_t pid, uint64_t address, const void* data, size_t size) {
  iovec local{const_cast<void*>(data), size};
  iovec remote{reinterpret_cast<void*>(address), size};
  return process_vm_writev(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

}  // namespace

Result<void> HijackedThread::take(uint64_t rewind_to) {
  if (!read_registers(tid_, saved_)) return fail_errno("registers cannot be read");
  if (rewind_to != 0) {
    saved_.rip = rewind_to;
    saved_.orig_rax = static_cast<unsigned long long>(-1);
  }
  vectors_.resize(kMostVectorBytes);
  iovec io{vectors_.data(), vectors_.size()};
  if (ptrace(PTRACE_GETREGSET, tid_, NT_X86_XSTATE, &io) != 0)
    return fail_errno("vector registers cannot be read");
  vectors_.resize(io.iov_len);
  if (ptrace(PTRACE_GETSIGMASK, tid_, sizeof mask_, &mask_) != 0)
    return fail_errno("the signal mask cannot be read");
  if (rewind_to != 0 && tracees_.blocked_trap(tid_)) mask_ |= uint64_t{1} << (SIGTRAP - 1);
  uint64_t blocked = all_but_faults();
  if (ptrace(PTRACE_SETSIGMASK, tid_, sizeof blocked, &blocked) != 0)
    return fail_errno("the signal mask cannot be set");
  taken_ = true;
  tracees_.own(tid_);
  hurry();
  return make_stack();
}

// It is held until it has made its calls: it goes before others of its program. Needs privilege.
void HijackedThread::hurry() {
  errno = 0;
  nice_ = getpriority(PRIO_PROCESS, static_cast<id_t>(tid_));
  hurries_ = errno == 0 && setpriority(PRIO_PROCESS, static_cast<id_t>(tid_), kMostUrgent) == 0;
}

// Room below the red zone of what the thread uses, and no code there: coming back must trap. Only
// of the main thread: below others' stack pointers may lie what a coroutine's stack was cut out of.
bool HijackedThread::use_own_stack() {
  if (tid_ != pid_) return false;
  auto maps = os::ProcFs().maps(pid_);
  if (!maps) return false;
  uint64_t low = (saved_.rsp - kRedZone - kStackBytes) & ~uint64_t{4095};
  for (const os::MapsEntry& entry : *maps) {
    if (saved_.rsp < entry.start || saved_.rsp >= entry.end) continue;
    bool is_stack = entry.path == "[stack]" && entry.writable && !entry.executable;
    if (!is_stack || low < entry.start) return false;
    stack_ = low;
    return true;
  }
  return false;
}

Result<void> HijackedThread::make_stack() {
  own_stack_ = use_own_stack();
  if (own_stack_) return {};
  auto mapped = syscall(SYS_mmap, {0, kStackBytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, static_cast<uint64_t>(-1), 0});
  if (!mapped) return std::unexpected(mapped.error());
  if (*mapped < 0 && *mapped > -4096) return fail("the target has no memory for a call");
  stack_ = static_cast<uint64_t>(*mapped);
  return {};
}

// A call may wait for a lock that a thread holds which job control has stopped: that is not given
// up, it goes on when the process does.
std::optional<Tracees::Event> HijackedThread::wait_for_stop(TimeNs& deadline) {
  while (true) {
    auto event = tracees_.wait(deadline);
    if (event || tracees_.gone() || !tracees_.others_are_stopped(tid_)) return event;
    deadline = monotonic_ns() + kCallNs;
  }
}

Result<void> HijackedThread::run_to(const user_regs_struct& registers, int signal, int request) {
  if (!write_registers(tid_, registers)) return fail_errno("registers cannot be set");
  TimeNs deadline = monotonic_ns() + kCallNs;
  if (!tracees_.resume(tid_, request)) return fail_errno("the thread cannot be resumed");
  while (auto event = wait_for_stop(deadline)) {
    if (event->tid != tid_) {
      // Another thread came to the breakpoint that is already gone: it goes on from there.
      if (event->stop == Tracees::Stop::breakpoint) tracees_.step_back(event->tid);
      tracees_.resume(event->tid, PTRACE_CONT);
      continue;
    }
    if (event->stop == Tracees::Stop::interrupted) {
      tracees_.resume(tid_, request);
      continue;
    }
    if (event->signal == signal) return {};
    if (event->signal == SIGSTOP) {  // the process stops, all but this thread
      tracees_.resume(tid_, request, SIGSTOP);
      continue;
    }
    return fail("an injected call failed with signal {}", event->signal);
  }
  return tracees_.gone() ? fail("the target ended meanwhile")
                         : fail("an injected call did not come back");
}

Result<int64_t> HijackedThread::syscall(int64_t number, std::initializer_list<uint64_t> arguments) {
  user_regs_struct registers = saved_;
  registers.rip = syscall_;
  registers.rax = static_cast<unsigned long long>(number);
  registers.orig_rax = static_cast<unsigned long long>(-1);
  unsigned long long* places[] = {&registers.rdi, &registers.rsi, &registers.rdx,
                                  &registers.r10, &registers.r8,  &registers.r9};
  size_t i = 0;
  for (uint64_t argument : arguments) *places[i++] = argument;
  // One instruction; the stop after it is a signal's, as after a call.
  if (auto done = run_to(registers, SIGTRAP, PTRACE_SINGLESTEP); !done)
    return std::unexpected(done.error());
  if (!read_registers(tid_, registers)) return fail_errno("registers cannot be read");
  if (registers.rip != syscall_ + 2) return fail("an injected system call went astray");
  return static_cast<int64_t>(registers.rax);
}

Result<uint64_t> HijackedThread::call(uint64_t function,
                                      std::initializer_list<uint64_t> arguments) {
  user_regs_struct registers = saved_;
  uint64_t top = (stack_ + kStackBytes - 256) & ~uint64_t{15};
  uint64_t return_to = stack_ + kReturnTo;
  registers.rsp = top - 8;
  registers.rbp = 0;
  if (!write_memory(pid_, registers.rsp, &return_to, sizeof return_to))
    return fail_errno("the target's memory cannot be written");
  registers.rip = function;
  registers.rax = 0;
  registers.orig_rax = static_cast<unsigned long long>(-1);
  registers.eflags &= ~uint64_t{0x500};  // no single step, no backward string operations
  unsigned long long* places[] = {&registers.rdi, &registers.rsi, &registers.rdx,
                                  &registers.rcx, &registers.r8,  &registers.r9};
  size_t i = 0;
  for (uint64_t argument : arguments) *places[i++] = argument;
  auto ended = run_to(registers, SIGSEGV, PTRACE_CONT);
  user_regs_struct after{};
  if (!read_registers(tid_, after)) return fail("the target ended meanwhile");
  // Coming back is a fault at the return address, and the only one that is meant.
  if (after.rip != return_to) {
    return ended ? fail("an injected call ended at {:#x} instead of returning", after.rip)
                 : std::unexpected(ended.error());
  }
  return after.rax;
}

Result<uint64_t> HijackedThread::put_text(const std::string& text) {
  if (text.size() + 1 > kTextBytes) return fail("a name is too long for the target");
  if (!write_memory(pid_, stack_, text.c_str(), text.size() + 1))
    return fail_errno("the target's memory cannot be written");
  return stack_;
}

bool HijackedThread::read_memory(uint64_t address, void* into, size_t size) const {
  iovec local{into, size};
  iovec remote{reinterpret_cast<void*>(address), size};
  return process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

std::string HijackedThread::read_text(uint64_t address) const {
  std::string text(512, '\0');
  iovec local{text.data(), text.size()};
  iovec remote{reinterpret_cast<void*>(address), text.size()};
  ssize_t got = process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text.substr(0, text.find('\0'));
}

Result<void> HijackedThread::restore() {
  if (!taken_) return {};
  taken_ = false;
  // A call that did not come back is given up where it is: what it holds stays held, but the thread
  // itself goes on.
  if (!tracees_.is_stopped(tid_)) {
    tracees_.interrupt(tid_);
    TimeNs deadline = monotonic_ns() + kCallNs;
    while (!tracees_.is_stopped(tid_) && tracees_.wait(deadline)) {
    }
    stack_ = 0;  // it may be in use
  }
  // Every call ends in a stop inside the kernel's signal code, from where an interrupted system
  // call is taken up again.
  if (stack_ != 0 && !own_stack_) (void)syscall(SYS_munmap, {stack_, kStackBytes});
  if (hurries_) setpriority(PRIO_PROCESS, static_cast<id_t>(tid_), nice_);
  if (tracees_.gone()) return fail("the target ended meanwhile");
  user_regs_struct final = saved_;
  begin_call_again(pid_, tid_, mask_, final);
  iovec io{vectors_.data(), vectors_.size()};
  bool vectors = ptrace(PTRACE_SETREGSET, tid_, NT_X86_XSTATE, &io) == 0;
  bool whole = write_registers(tid_, final) && vectors &&
               ptrace(PTRACE_SETSIGMASK, tid_, sizeof mask_, &mask_) == 0;
  tracees_.own(0);
  tracees_.release(tid_);
  return whole ? Result<void>{} : fail("the thread could not be put back as it was");
}

}  // namespace assay::capture
