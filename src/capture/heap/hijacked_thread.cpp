#include "capture/heap/hijacked_thread.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/process/mapping_lookup.h"
#include "os/trace/target_memory.h"
#include "os/trace/traced_thread.h"

namespace assay::capture {
namespace {

constexpr uint64_t kStackBytes = 96 << 10;
constexpr uint64_t kRedZone = 512;
constexpr uint64_t kDescriptorBytes = 8192;  // more than any libc's
constexpr uint64_t kTextBytes = 4096;        // at the stack's low end
constexpr int64_t kCallNs = 10 * kNsPerSecond;
constexpr int kMostUrgent = -20;
constexpr uint64_t kShortestSliceNs = 100'000;
constexpr size_t kMostVectorBytes = 16 << 10;

uint64_t bit_of(int signal) {
  return uint64_t{1} << (signal - 1);
}

uint64_t all_but_faults() {
  uint64_t faults = 0;
  for (int signal : {SIGSEGV, SIGTRAP, SIGBUS, SIGILL, SIGFPE}) faults |= bit_of(signal);
  return ~faults;
}

void prepare_syscall(int64_t number, std::initializer_list<uint64_t> arguments,
                     user_regs_struct& registers) {
  registers.rax = static_cast<unsigned long long>(number);
  registers.orig_rax = static_cast<unsigned long long>(-1);
  unsigned long long* places[] = {&registers.rdi, &registers.rsi, &registers.rdx,
                                  &registers.r10, &registers.r8,  &registers.r9};
  size_t i = 0;
  for (uint64_t argument : arguments) *places[i++] = argument;
}

bool read_scheduling(pid_t tid, Scheduling& scheduling) {
  return ::syscall(SYS_sched_getattr, tid, &scheduling, sizeof scheduling, 0) == 0;
}

bool write_scheduling(pid_t tid, const Scheduling& scheduling) {
  return ::syscall(SYS_sched_setattr, tid, &scheduling, 0) == 0;
}

}  // namespace

Result<void> HijackedThread::take(uint64_t rewind_to) {
  if (!os::read_registers(tid_, saved_.registers)) return fail_errno("registers cannot be read");
  if (rewind_to != 0) {
    saved_.registers.rip = rewind_to;
    saved_.registers.orig_rax = static_cast<unsigned long long>(-1);
  }
  if (!os::read_vector_registers(tid_, kMostVectorBytes, saved_.vectors))
    return fail_errno("vector registers cannot be read");
  if (!os::read_signal_mask(tid_, saved_.mask)) return fail_errno("the signal mask cannot be read");
  if (rewind_to != 0 && tracees_.blocked_trap(tid_)) saved_.mask |= bit_of(SIGTRAP);
  leave_no_interruption();
  if (!put_landing()) return fail_errno("the target's code cannot be written");
  taken_ = true;
  tracees_.own(tid_);
  plan_to_hurry();
  return make_stack();
}

// Some calls answer a mere stop with EINTR. Until the thread makes its calls, that would be all
// that is left of us if we were killed: better that they begin anew.
void HijackedThread::leave_no_interruption() const {
  if (static_cast<int64_t>(saved_.registers.rax) != -EINTR) return;
  user_regs_struct anew = saved_.registers;
  begin_call_anew(anew);
  os::write_registers(tid_, anew);
}

// It stays there: a thread that was left alone before may still be on its way to it.
bool HijackedThread::put_landing() const {
  const auto& bytes = landing_code();
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if (!os::write_code_word(tid_, landing_ + at, word)) return false;
  }
  return true;
}

bool HijackedThread::is_on_its_way_back(pid_t tid) {
  constexpr int kNeverBlocked[] = {SIGKILL, SIGSTOP};
  uint64_t ours = all_but_faults(), mask = 0;
  for (int signal : kNeverBlocked) ours &= ~bit_of(signal);
  return os::read_signal_mask(tid, mask) && mask == ours;
}

// Also once it has come back: the signal by which it does may be one that the thread blocks.
uint64_t HijackedThread::blocked_meanwhile() const {
  return all_but_faults() & ~bit_of(signal_);
}

// Real-time threads and the like come first as they are.
void HijackedThread::plan_to_hurry() {
  Scheduling now;
  if (may_hurry_ && read_scheduling(tid_, now) && now.policy == SCHED_OTHER)
    saved_.scheduling = now;
}

// The thread is held until it has made its calls, so it gets the best priority meanwhile. Needs
// privilege. Only after its frame is written: if the tracer is killed, the frame puts the priority
// back.
void HijackedThread::hurry() {
  if (hurries_ || !saved_.scheduling) return;
  Scheduling urgent = *saved_.scheduling;
  urgent.nice = kMostUrgent;
  urgent.slice_ns = kShortestSliceNs;  // a shorter slice is scheduled sooner (Linux 6.12)
  hurries_ = write_scheduling(tid_, urgent);
}

// Room below the red zone of what the thread uses. Only on the stack that it began with: below
// other stack pointers may lie what a coroutine's stack was cut out of. The library's own stacks
// are mappings with a guard below and the thread's descriptor at their upper end.
bool HijackedThread::use_own_stack() {
  os::ProcFs proc;
  os::MappingLookup mappings(proc, pid_);  // the thread is held: all of them would take too long
  uint64_t sp = saved_.registers.rsp, descriptor = saved_.registers.fs_base;
  auto stack = mappings.at(sp);
  if (!stack) return false;
  bool is_first = tid_ == pid_ && stack->path == "[stack]";
  auto below = is_first ? std::nullopt : mappings.at(stack->start - 1);
  bool is_guarded = below && !below->writable;
  bool has_descriptor =
      descriptor > sp && descriptor + kDescriptorBytes > stack->end && descriptor < stack->end;
  uint64_t low = (sp - kRedZone - kStackBytes) & ~uint64_t{4095};
  bool is_own = is_first || (is_guarded && has_descriptor);
  if (!is_own || !stack->writable || low < stack->start) return false;
  stack_ = low;
  return true;
}

Result<void> HijackedThread::make_stack() {
  own_stack_ = use_own_stack();
  if (!own_stack_) {
    uint64_t blocked = all_but_faults();
    os::write_signal_mask(tid_, blocked);
    auto mapped =
        step_syscall(SYS_mmap, {0, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                static_cast<uint64_t>(-1), 0});
    if (!mapped) return std::unexpected(mapped.error());
    if (*mapped < 0 && *mapped > -4096) return fail("the target has no memory for a call");
    stack_ = static_cast<uint64_t>(*mapped);
  }
  ThreadState alone = saved_;
  begin_call_anew(alone.registers);
  frame_ = make_return_frame(alone, blocked_meanwhile(), landing_ + kLandingReturn,
                             stack_ + kStackBytes);
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

Result<void> HijackedThread::run_to(int signal, os::Resume how) {
  TimeNs deadline = monotonic_ns() + kCallNs;
  if (!tracees_.resume(tid_, how)) return fail_errno("the thread cannot be resumed");
  while (auto event = wait_for_stop(deadline)) {
    if (event->tid != tid_) {
      // Another thread came to the breakpoint that is already gone: it goes on from there.
      if (event->stop == Tracees::Stop::breakpoint) tracees_.step_back(event->tid);
      tracees_.resume(event->tid, os::Resume::run);
      continue;
    }
    if (event->stop == Tracees::Stop::interrupted) {
      tracees_.resume(tid_, how);
      continue;
    }
    if (event->signal == signal) return {};
    if (event->signal == SIGSTOP) {  // the process stops, all but this thread
      tracees_.resume(tid_, how, SIGSTOP);
      continue;
    }
    return fail("an injected call failed with signal {}", event->signal);
  }
  return tracees_.gone() ? fail("the target ended meanwhile")
                         : fail("an injected call did not come back");
}

Result<int64_t> HijackedThread::step_syscall(int64_t number,
                                             std::initializer_list<uint64_t> arguments) {
  user_regs_struct registers = saved_.registers;
  prepare_syscall(number, arguments, registers);
  registers.rip = landing_ + kLandingSyscall;
  if (!os::write_registers(tid_, registers)) return fail_errno("registers cannot be set");
  // One instruction; the stop after it is a signal's, as after a call.
  if (auto done = run_to(SIGTRAP, os::Resume::step); !done) return std::unexpected(done.error());
  if (!os::read_registers(tid_, registers)) return fail_errno("registers cannot be read");
  if (registers.rip != landing_ + kLandingReturn)
    return fail("an injected system call went astray");
  return static_cast<int64_t>(registers.rax);
}

// In an order in which the thread could be left alone after every step.
Result<uint64_t> HijackedThread::go(const user_regs_struct& registers) {
  uint64_t blocked = all_but_faults();
  if (!os::write_target(pid_, frame_.at, frame_.bytes.data(), frame_.bytes.size()))
    return fail_errno("the target's memory cannot be written");
  if (!os::write_registers(tid_, registers)) return fail_errno("registers cannot be set");
  if (!os::write_signal_mask(tid_, blocked)) return fail_errno("the signal mask cannot be set");
  hurry();
  if (tgkill(pid_, tid_, signal_) != 0) return fail_errno("the thread cannot be sent a signal");
  auto ended = run_to(signal_, os::Resume::run);
  user_regs_struct after{};
  if (!os::read_registers(tid_, after)) return fail("the target ended meanwhile");
  if (!ended) return std::unexpected(ended.error());
  uint64_t result = 0;
  if (after.rip != landing_ + kLandingStop || !read_memory(frame_.at, &result, sizeof result))
    return fail("an injected call ended at {:#x} instead of returning", after.rip);
  return result;
}

Result<int64_t> HijackedThread::syscall(int64_t number, std::initializer_list<uint64_t> arguments) {
  user_regs_struct registers = saved_.registers;
  prepare_syscall(number, arguments, registers);
  registers.rip = landing_ + kLandingSyscall;
  registers.rsp = frame_.at + sizeof(uint64_t);
  auto result = go(registers);
  if (!result) return std::unexpected(result.error());
  return static_cast<int64_t>(*result);
}

Result<uint64_t> HijackedThread::call(uint64_t function,
                                      std::initializer_list<uint64_t> arguments) {
  user_regs_struct registers = saved_.registers;
  registers.rsp = frame_.at;
  registers.rbp = 0;
  registers.rip = function;
  registers.rax = 0;
  registers.orig_rax = static_cast<unsigned long long>(-1);
  registers.eflags &= ~uint64_t{0x500};  // no single step, no backward string operations
  unsigned long long* places[] = {&registers.rdi, &registers.rsi, &registers.rdx,
                                  &registers.rcx, &registers.r8,  &registers.r9};
  size_t i = 0;
  for (uint64_t argument : arguments) *places[i++] = argument;
  return go(registers);
}

Result<uint64_t> HijackedThread::put_text(const std::string& text) {
  if (text.size() + 1 > kTextBytes) return fail("a name is too long for the target");
  if (!os::write_target(pid_, stack_, text.c_str(), text.size() + 1))
    return fail_errno("the target's memory cannot be written");
  return stack_;
}

bool HijackedThread::read_memory(uint64_t address, void* into, size_t size) const {
  return os::read_target_whole(pid_, address, into, size);
}

std::string HijackedThread::read_text(uint64_t address) const {
  std::string text = os::read_target_text(pid_, address, 512);
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
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
  if (stack_ != 0 && !own_stack_) (void)step_syscall(SYS_munmap, {stack_, kStackBytes});
  if (hurries_) write_scheduling(tid_, *saved_.scheduling);
  if (tracees_.gone()) return fail("the target ended meanwhile");
  user_regs_struct final = saved_.registers;
  begin_call_again(pid_, tid_, saved_.mask, final);
  bool whole = os::write_vector_registers(tid_, saved_.vectors);
  // The mask first: a thread that is left alone now still comes back by its frame.
  whole = os::write_signal_mask(tid_, saved_.mask) && whole;
  whole = os::write_registers(tid_, final) && whole;
  tracees_.own(0);
  tracees_.release(tid_);
  return whole ? Result<void>{} : fail("the thread could not be put back as it was");
}

}  // namespace assay::capture
