// Tracees on real children: which threads are stopped, and what is left behind.
#include "capture/heap/tracees.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "capture/heap/testing/traced_child.h"
#include "os/trace/target_memory.h"

namespace assay::capture {
namespace {

using fake::come_by;
using fake::eventually;
using fake::run_busily;
using fake::SharedCounters;
using fake::sleep_undisturbed;
using fake::TracedChild;
using Stop = Tracees::Stop;

constexpr int64_t kLongNs = 5 * kNsPerSecond, kShortNs = 50 * kNsPerMs;
const uint64_t kComeBy = reinterpret_cast<uint64_t>(&come_by);

SharedCounters* counters = nullptr;  // of the child that handles signals

void count_signal(int) {
  counters->signals += 1;
}

int count_signals(SharedCounters& shared) {
  counters = &shared;
  ::signal(SIGUSR1, count_signal);
  return run_busily(shared);
}

uint8_t first_byte_of(pid_t pid, uint64_t address) {
  uint8_t byte = 0;
  EXPECT_TRUE(os::read_target_whole(pid, address, &byte, 1));
  return byte;
}

#define SEIZE_OR_SKIP(tracees, tid)                \
  if (auto seized = (tracees).seize(tid); !seized) \
  GTEST_SKIP() << "skipped: no ptrace here: " << seized.error().text()

class TraceesTest : public ::testing::Test {
 protected:
  os::ProcFs proc_;
};

TEST_F(TraceesTest, AnInterruptStopsAThreadSeizingDoesNot) {
  TracedChild child(run_busily);
  Tracees tracees(proc_, child.pid());
  SEIZE_OR_SKIP(tracees, child.pid());
  EXPECT_TRUE(child.goes_on());
  EXPECT_FALSE(tracees.is_stopped(child.pid()));
  ASSERT_TRUE(tracees.interrupt(child.pid()));
  auto event = tracees.wait(monotonic_ns() + kLongNs);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->tid, child.pid());
  EXPECT_EQ(event->stop, Stop::interrupted);
  EXPECT_TRUE(tracees.is_stopped(child.pid()));
  uint64_t rounds = child.shared().rounds;
  usleep(20'000);
  EXPECT_EQ(child.shared().rounds, rounds) << "it is held";
  tracees.release(child.pid());
  EXPECT_TRUE(tracees.seized().empty());
  EXPECT_TRUE(child.goes_on());
  EXPECT_EQ(child.end(), "exit 0");
}

TEST_F(TraceesTest, SignalsReachThreadsThatAreNotOwned) {
  TracedChild child(count_signals);
  Tracees tracees(proc_, child.pid());
  SEIZE_OR_SKIP(tracees, child.pid());
  ASSERT_EQ(::kill(child.pid(), SIGUSR1), 0);
  EXPECT_TRUE(eventually([&] {
    EXPECT_FALSE(tracees.wait(monotonic_ns() + kShortNs)) << "it is not for the injector";
    return child.shared().signals == 1;
  }));
}

TEST_F(TraceesTest, SignalsOfTheOwnedThreadAreHandedOver) {
  TracedChild child(count_signals);
  Tracees tracees(proc_, child.pid());
  SEIZE_OR_SKIP(tracees, child.pid());
  tracees.own(child.pid());
  ASSERT_EQ(::kill(child.pid(), SIGUSR1), 0);
  auto event = tracees.wait(monotonic_ns() + kLongNs);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->stop, Stop::signal);
  EXPECT_EQ(event->signal, SIGUSR1);
  EXPECT_EQ(child.shared().signals, 0u);
  tracees.own(0);
  tracees.release(child.pid(), SIGUSR1);
  EXPECT_TRUE(eventually([&] { return child.shared().signals == 1; })) << "it gets it in the end";
}

// A thread that is still held gets the signal that it was stopped for.
TEST_F(TraceesTest, TheDestructorLetsGoAndKeepsSignals) {
  TracedChild child(count_signals);
  {
    Tracees tracees(proc_, child.pid());
    SEIZE_OR_SKIP(tracees, child.pid());
    tracees.own(child.pid());
    ASSERT_EQ(::kill(child.pid(), SIGUSR1), 0);
    ASSERT_TRUE(tracees.wait(monotonic_ns() + kLongNs));
  }
  EXPECT_TRUE(eventually([&] { return child.shared().signals == 1; }));
  EXPECT_EQ(proc_.status(child.pid())->tracer, 0);
  EXPECT_EQ(child.end(), "exit 0");
}

TEST_F(TraceesTest, ABreakpointIsComeToAndLeavesNoTrace) {
  TracedChild child(run_busily);
  uint8_t original = first_byte_of(child.pid(), kComeBy);
  {
    Tracees tracees(proc_, child.pid());
    if (auto all = tracees.seize_all(); !all) GTEST_SKIP() << "skipped: " << all.error().text();
    Breakpoint breakpoint(child.pid(), kComeBy);
    ASSERT_TRUE(breakpoint.insert());
    EXPECT_EQ(first_byte_of(child.pid(), kComeBy), 0xcc);
    tracees.watch(&breakpoint);
    auto event = tracees.wait(monotonic_ns() + kLongNs);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->stop, Stop::breakpoint);
    EXPECT_TRUE(breakpoint.remove());
    EXPECT_TRUE(breakpoint.remove()) << "a second time does no harm";
    tracees.step_back(event->tid);
    user_regs_struct registers{};
    ASSERT_TRUE(os::read_registers(event->tid, registers));
    EXPECT_EQ(registers.rip, kComeBy);
    tracees.release_all();
    tracees.watch(nullptr);
  }
  EXPECT_EQ(first_byte_of(child.pid(), kComeBy), original);
  EXPECT_TRUE(child.goes_on());
  EXPECT_EQ(child.end(), "exit 0");
}

TEST_F(TraceesTest, ABreakpointOfAnotherTracerIsLeftAlone) {
  TracedChild child(sleep_undisturbed);
  Breakpoint first(child.pid(), kComeBy), second(child.pid(), kComeBy);
  if (!first.insert()) GTEST_SKIP() << "skipped: the child's memory may not be written";
  auto refused = second.insert();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("another tracer has a breakpoint"), std::string::npos);
  EXPECT_TRUE(second.remove());
  EXPECT_EQ(first_byte_of(child.pid(), kComeBy), 0xcc) << "the first one's stays";
}

int fork_one_that_comes_by(SharedCounters& shared) {
  shared.ready = true;
  while (shared.told == 0) usleep(500);
  pid_t grandchild = ::fork();
  if (grandchild == 0) ::_exit(static_cast<int>(come_by(6)));
  int status = 0;
  ::waitpid(grandchild, &status, 0);
  shared.told = WIFEXITED(status) ? static_cast<uint64_t>(WEXITSTATUS(status)) : 1000;
  while (!shared.stop) usleep(500);
  return 0;
}

// A child that is forked while a breakpoint stands has a copy of it in its code.
TEST_F(TraceesTest, AForkedChildIsLetGoWithoutTheBreakpoint) {
  TracedChild child(fork_one_that_comes_by);
  Tracees tracees(proc_, child.pid());
  if (auto all = tracees.seize_all(); !all) GTEST_SKIP() << "skipped: " << all.error().text();
  Breakpoint breakpoint(child.pid(), kComeBy);
  ASSERT_TRUE(breakpoint.insert());
  tracees.watch(&breakpoint);
  child.shared().told = 1;
  EXPECT_TRUE(eventually([&] {
    EXPECT_FALSE(tracees.wait(monotonic_ns() + kShortNs)) << "the parent itself never comes by";
    return child.shared().told != 1;
  }));
  EXPECT_EQ(child.shared().told, 7u) << "1000: the grandchild was ended by the breakpoint";
  tracees.release_all();
  tracees.watch(nullptr);
}

TEST_F(TraceesTest, ATargetThatEndsIsGone) {
  TracedChild child([](SharedCounters& shared) {
    shared.ready = true;
    while (!shared.stop) usleep(500);
    return 0;
  });
  Tracees tracees(proc_, child.pid());
  SEIZE_OR_SKIP(tracees, child.pid());
  ::kill(child.pid(), SIGKILL);
  EXPECT_FALSE(tracees.wait(monotonic_ns() + kLongNs));
  EXPECT_TRUE(tracees.gone());
}

TEST_F(TraceesTest, JobControlIsToldOfAndStaysInForce) {
  TracedChild child(run_busily);
  bool stopped = false;
  {
    Tracees tracees(proc_, child.pid());
    tracees.tell_stops(&stopped);
    SEIZE_OR_SKIP(tracees, child.pid());
    ASSERT_EQ(::kill(child.pid(), SIGSTOP), 0);
    EXPECT_TRUE(eventually([&] {
      EXPECT_FALSE(tracees.wait(monotonic_ns() + kShortNs)) << "job control is no interrupt of ours";
      return stopped;
    }));
  }
  EXPECT_TRUE(eventually([&] { return child.state() == 'T'; })) << "it stays stopped";
  ASSERT_EQ(::kill(child.pid(), SIGCONT), 0);
  EXPECT_TRUE(child.goes_on());
}

int run_three_threads(SharedCounters& shared) {
  sigset_t trap;
  sigemptyset(&trap);
  sigaddset(&trap, SIGTRAP);
  pthread_sigmask(SIG_BLOCK, &trap, nullptr);
  ::signal(SIGTRAP, count_signal);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      shared.told += 1;
      while (!shared.stop) usleep(500);
    });
  }
  while (shared.told < 2) usleep(500);
  int code = run_busily(shared);
  for (std::thread& thread : threads) thread.join();
  return code;
}

TEST_F(TraceesTest, AllThreadsAreSeizedAndWhatTheyBlockIsKnown) {
  TracedChild child(run_three_threads);
  Tracees tracees(proc_, child.pid());
  if (auto all = tracees.seize_all(); !all) GTEST_SKIP() << "skipped: " << all.error().text();
  EXPECT_EQ(tracees.seized().size(), 3u);
  for (pid_t tid : tracees.seized()) {
    EXPECT_TRUE(tracees.blocked_trap(tid));
    EXPECT_FALSE(tracees.takes_signal(tid, SIGTRAP));
    EXPECT_TRUE(tracees.takes_signal(tid, SIGURG));
  }
  EXPECT_TRUE(tracees.breakpoints_harm()) << "a trap would take the program's handler away";
  tracees.release_all();
  EXPECT_TRUE(tracees.seized().empty());
  EXPECT_EQ(child.end(), "exit 0");
}

TEST_F(TraceesTest, AThreadThatIsNotThereIsNoError) {
  TracedChild child(sleep_undisturbed);
  Tracees tracees(proc_, child.pid());
  constexpr pid_t kNoSuchThread = 4'194'303;
  auto seized = tracees.seize(kNoSuchThread);
  ASSERT_TRUE(seized) << seized.error().text();
  EXPECT_FALSE(*seized);
}

// orig_rax: the call's number, −1 outside; rax: what it says.
user_regs_struct in_call(int64_t number, int64_t result) {
  user_regs_struct registers{};
  registers.orig_rax = static_cast<unsigned long long>(number);
  registers.rax = static_cast<unsigned long long>(result);
  registers.rip = 0x1002;
  return registers;
}

TEST(RestartableCall, IsOneThatHasDoneNothingYet) {
  for (int64_t kernels_own : {-512, -513, -514, -516})
    EXPECT_TRUE(in_restartable_syscall(in_call(SYS_read, kernels_own))) << kernels_own;
  EXPECT_TRUE(in_restartable_syscall(in_call(SYS_epoll_wait, -EINTR)));
  EXPECT_FALSE(in_restartable_syscall(in_call(SYS_close, -EINTR))) << "the descriptor is closed";
  EXPECT_FALSE(in_restartable_syscall(in_call(SYS_connect, -EINTR))) << "it goes on connecting";
  EXPECT_FALSE(in_restartable_syscall(in_call(SYS_read, 5)));
  EXPECT_FALSE(in_restartable_syscall(in_call(SYS_read, -EAGAIN)));
  EXPECT_FALSE(in_restartable_syscall(in_call(-1, -512))) << "outside a call it is a number";
}

TEST(RestartableCall, BeginsAnewBeforeItsInstruction) {
  user_regs_struct registers = in_call(SYS_epoll_wait, -EINTR);
  begin_call_anew(registers);
  EXPECT_EQ(registers.rax, static_cast<unsigned long long>(SYS_epoll_wait));
  EXPECT_EQ(registers.rip, 0x1000u) << "syscall has two bytes";
  EXPECT_EQ(registers.orig_rax, ~0ULL) << "the kernel must not do it once more";
  user_regs_struct done = in_call(SYS_read, 5);
  begin_call_anew(done);
  EXPECT_EQ(done.rax, 5u);
  EXPECT_EQ(done.rip, 0x1002u);
}

// EINTR is right where a handler is to run; else the stop must not show.
TEST(RestartableCall, BeginsAgainUnlessASignalIsPending) {
  TracedChild child([](SharedCounters& shared) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    shared.ready = true;
    while (!shared.stop) usleep(500);
    return 0;
  });
  auto again = [&](uint64_t mask, int64_t number, int64_t result) {
    user_regs_struct registers = in_call(number, result);
    bool changed = begin_call_again(child.pid(), child.pid(), mask, registers);
    EXPECT_EQ(registers.rip, changed ? 0x1000u : 0x1002u);
    return changed;
  };
  EXPECT_TRUE(again(0, SYS_epoll_wait, -EINTR));
  EXPECT_FALSE(again(0, SYS_epoll_wait, -512)) << "the kernel takes it up itself";
  EXPECT_FALSE(again(0, SYS_close, -EINTR));
  ASSERT_EQ(::kill(child.pid(), SIGUSR1), 0);
  EXPECT_FALSE(again(0, SYS_epoll_wait, -EINTR));
  EXPECT_TRUE(again(uint64_t{1} << (SIGUSR1 - 1), SYS_epoll_wait, -EINTR)) << "it is blocked";
}

}  // namespace
}  // namespace assay::capture
