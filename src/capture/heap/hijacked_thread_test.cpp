// HijackedThread on real children: calls are made, and the thread is as it was before.
#include "capture/heap/hijacked_thread.h"

#include <cstring>

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "capture/heap/testing/traced_child.h"

// Room in a page of code that nothing uses, as at the end of a mapped file.
asm(".text\n.p2align 6\n.globl assay_test_landing\nassay_test_landing:\n.skip 128, 0\n");
extern "C" const char assay_test_landing[];

namespace assay::capture {
namespace {

using fake::come_by;
using fake::eventually;
using fake::run_busily;
using fake::SharedCounters;
using fake::sleep_undisturbed;
using fake::TracedChild;

const uint64_t kLanding = reinterpret_cast<uint64_t>(&assay_test_landing);
constexpr int64_t kLongNs = 5 * kNsPerSecond;

[[gnu::noinline]] uint64_t join_digits(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                       uint64_t f) {
  return a * 100'000 + b * 10'000 + c * 1'000 + d * 100 + e * 10 + f;
}
[[gnu::noinline]] uint64_t length_of(const char* text) {
  return std::strlen(text);
}
[[gnu::noinline]] uint64_t touch_nothing(volatile uint64_t* nowhere) {
  return *nowhere;
}
// A call that overwrites a vector register, as every function may.
[[gnu::noinline]] uint64_t disturb_vectors() {
  asm volatile("pxor %%xmm8, %%xmm8" ::: "xmm8");
  return 1;
}

// Sleeps with a number in a vector register; 0: it was there in the end, and no sleep was
// interrupted.
int sleep_with_vectors(SharedCounters& shared) {
  shared.ready = true;
  for (uint64_t number = 1; !shared.stop; ++number) {
    timespec nap{0, 20'000'000};
    uint64_t after = 0;
    int64_t result = SYS_nanosleep;
    asm volatile("movq %[number], %%xmm8; syscall; movq %%xmm8, %[after]"
                 : [after] "=r"(after), "+a"(result)
                 : [number] "r"(number), "D"(&nap), "S"(nullptr)
                 : "rcx", "r11", "xmm8", "memory");
    if (result != 0) return 2;
    if (after != number) return 3;
    shared.rounds += 1;
  }
  return 0;
}

template <class Function>
uint64_t address_of(Function* function) {
  return reinterpret_cast<uint64_t>(function);
}

// A child of which one thread is held where it may make calls.
class HeldThread {
 public:
  enum class Where { in_clock_nanosleep, in_nanosleep, at_come_by };
  explicit HeldThread(const TracedChild::Body& body, Where where = Where::in_clock_nanosleep)
      : child(body), tracees(proc_, child.pid()), breakpoint_(child.pid(), address_of(&come_by)) {
    if (where == Where::at_come_by) stop_at_come_by();
    if (where == Where::in_clock_nanosleep) stop_in(SYS_clock_nanosleep);
    if (where == Where::in_nanosleep) stop_in(SYS_nanosleep);
  }
  bool held() const { return held_; }
  Result<void> take() { return thread.take(rewind_to_); }

 private:
  os::ProcFs proc_;

 public:
  TracedChild child;
  Tracees tracees;

 private:
  Breakpoint breakpoint_;
  uint64_t rewind_to_ = 0;
  bool held_ = false;

  void stop_in(int64_t call) {
    for (int i = 0; i < 20 && !held_; ++i) {
      if (!child.waits_in(call) || !tracees.seize(child.pid())) return;
      tracees.interrupt(child.pid());
      auto event = tracees.wait(monotonic_ns() + kLongNs);
      user_regs_struct registers{};
      held_ = event && event->stop == Tracees::Stop::interrupted &&
              os::read_registers(child.pid(), registers) && in_restartable_syscall(registers);
      if (!held_) tracees.release(child.pid());
    }
  }
  void stop_at_come_by() {
    if (!tracees.seize_all() || !breakpoint_.insert()) return;
    tracees.watch(&breakpoint_);
    auto event = tracees.wait(monotonic_ns() + kLongNs);
    breakpoint_.remove();
    rewind_to_ = address_of(&come_by);
    held_ = event && event->stop == Tracees::Stop::breakpoint;
  }

 public:
  HijackedThread thread{tracees, child.pid(), child.pid(), kLanding, SIGURG, true};
};

#define TAKE_OR_SKIP(held)                                       \
  if (!(held).held()) GTEST_SKIP() << "skipped: no ptrace here"; \
  if (auto taken = (held).take(); !taken) FAIL() << taken.error().text()

TEST(HijackedThread, MakesSystemCallsAndCallsFunctions) {
  HeldThread held(sleep_undisturbed);
  TAKE_OR_SKIP(held);
  EXPECT_EQ(held.thread.syscall(SYS_getpid, {}), int64_t{held.child.pid()});
  EXPECT_EQ(held.thread.syscall(SYS_close, {uint64_t{99'999}}), int64_t{-EBADF});
  EXPECT_EQ(held.thread.call(address_of(&join_digits), {1, 2, 3, 4, 5, 6}), uint64_t{123'456});
  EXPECT_EQ(held.thread.call(address_of(&disturb_vectors), {}), uint64_t{1});
  ASSERT_TRUE(held.thread.restore());
  EXPECT_TRUE(held.child.goes_on());
  EXPECT_EQ(held.child.end(), "exit 0") << "2: its sleep was interrupted";
}

TEST(HijackedThread, TextGoesInAndComesOutHarmless) {
  HeldThread held(sleep_undisturbed);
  TAKE_OR_SKIP(held);
  auto text = held.thread.put_text("twelve chars");
  ASSERT_TRUE(text);
  EXPECT_EQ(held.thread.call(address_of(&length_of), {*text}), uint64_t{12});
  EXPECT_EQ(held.thread.read_text(*text), "twelve chars");
  auto hostile = held.thread.put_text("a\x1b[2Jb\xff");
  ASSERT_TRUE(hostile);
  EXPECT_EQ(held.thread.read_text(*hostile), "a?[2Jb?");
  EXPECT_FALSE(held.thread.put_text(std::string(5000, 'x'))) << "no room for it";
  uint64_t word = 0;
  EXPECT_FALSE(held.thread.read_memory(8, &word, sizeof word)) << "nothing is mapped there";
  ASSERT_TRUE(held.thread.restore());
  EXPECT_EQ(held.child.end(), "exit 0");
}

TEST(HijackedThread, VectorRegistersAreAsBefore) {
  HeldThread held(sleep_with_vectors, HeldThread::Where::in_nanosleep);
  TAKE_OR_SKIP(held);
  EXPECT_EQ(held.thread.call(address_of(&disturb_vectors), {}), uint64_t{1});
  ASSERT_TRUE(held.thread.restore());
  EXPECT_TRUE(held.child.goes_on());
  EXPECT_EQ(held.child.end(), "exit 0") << "3: a vector register was changed";
}

TEST(HijackedThread, ABusyThreadKeepsItsRegistersAndItsPlace) {
  HeldThread held(run_busily, HeldThread::Where::at_come_by);
  TAKE_OR_SKIP(held);
  EXPECT_EQ(held.thread.call(address_of(&disturb_vectors), {}), uint64_t{1});
  EXPECT_EQ(held.thread.call(address_of(&join_digits), {9, 8, 7, 6, 5, 4}), uint64_t{987'654});
  ASSERT_TRUE(held.thread.restore());
  EXPECT_TRUE(held.child.goes_on());
  EXPECT_EQ(held.child.end(), "exit 0") << "1: what it computed in registers was wrong";
}

TEST(HijackedThread, ACallThatFaultsIsAnErrorAndTheThreadGoesOn) {
  HeldThread held(sleep_undisturbed);
  TAKE_OR_SKIP(held);
  auto failed = held.thread.call(address_of(&touch_nothing), {uint64_t{16}});
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().what.find("signal 11"), std::string::npos) << failed.error().what;
  ASSERT_TRUE(held.thread.restore());
  EXPECT_TRUE(held.child.goes_on());
  EXPECT_EQ(held.child.end(), "exit 0");
}

SharedCounters* seen = nullptr;

int count_and_sleep(SharedCounters& shared) {
  seen = &shared;
  ::signal(SIGUSR1, [](int) { seen->signals += 1; });
  shared.ready = true;
  while (!shared.stop) {
    timespec nap{0, 20'000'000};
    ::nanosleep(&nap, nullptr);
    shared.rounds += 1;
  }
  return 0;
}

TEST(HijackedThread, HandlersOfTheProgramRunOnlyAfterwards) {
  HeldThread held(count_and_sleep);
  TAKE_OR_SKIP(held);
  ASSERT_EQ(::kill(held.child.pid(), SIGUSR1), 0);
  EXPECT_EQ(held.thread.syscall(SYS_getpid, {}), int64_t{held.child.pid()});
  EXPECT_EQ(held.child.shared().signals, 0u);
  ASSERT_TRUE(held.thread.restore());
  EXPECT_TRUE(eventually([&] { return held.child.shared().signals == 1; }));
  EXPECT_EQ(held.child.end(), "exit 0");
}

[[gnu::noinline]] uint64_t begin_and_dawdle(SharedCounters* shared) {
  disturb_vectors();
  shared->told = 1;
  timespec nap{0, 200'000'000};
  ::syscall(SYS_nanosleep, &nap, nullptr);
  shared->told = 2;
  return 0;
}

// The tracer is a process of its own, and is killed while the thread makes a call for it.
TEST(HijackedThread, PutsItselfBackWhenItsTracerIsKilled) {
  TracedChild child(sleep_with_vectors);
  SharedCounters& shared = child.shared();
  pid_t tracer = ::fork();
  if (tracer == 0) {
    os::ProcFs proc;
    Tracees tracees(proc, child.pid());
    if (!child.waits_in(SYS_nanosleep) || !tracees.seize(child.pid())) ::_exit(77);
    tracees.interrupt(child.pid());
    auto event = tracees.wait(monotonic_ns() + kLongNs);
    if (!event || event->stop != Tracees::Stop::interrupted) ::_exit(77);
    HijackedThread thread(tracees, child.pid(), child.pid(), kLanding, SIGURG, true);
    if (!thread.take(0)) ::_exit(77);
    (void)thread.call(address_of(&begin_and_dawdle), {reinterpret_cast<uint64_t>(&shared)});
    ::_exit(1);  // it was to be killed before
  }
  int status = 0;
  bool ended = false;
  EXPECT_TRUE(eventually([&] {
    ended = ended || ::waitpid(tracer, &status, WNOHANG) == tracer;
    return ended || shared.told == 1;
  }));
  if (ended) GTEST_SKIP() << "skipped: the thread could not be taken";
  ASSERT_EQ(::kill(tracer, SIGKILL), 0);
  ASSERT_EQ(::waitpid(tracer, nullptr, 0), tracer);
  EXPECT_TRUE(eventually([&] { return shared.told == 2; })) << "the call goes on to its end";
  EXPECT_TRUE(child.goes_on());
  EXPECT_EQ(os::ProcFs().status(child.pid())->tracer, 0);
  EXPECT_EQ(child.end(), "exit 0") << "2: its sleep was interrupted, 3: a register was changed";
}

template <class T>
T value_at(const ReturnFrame& frame, size_t at) {
  T value{};
  std::memcpy(&value, frame.bytes.data() + at, sizeof value);
  return value;
}

TEST(ReturnFrame, LiesBelowItsTopAndIsAlignedAsAfterACall) {
  ThreadState state;
  state.mask = 0x1234;
  state.vectors.assign(64, 0xab);  // shorter than any: taken as it is
  for (uint64_t top : {uint64_t{0x7000'0000}, uint64_t{0x7000'0fff}, uint64_t{0x7000'0038}}) {
    ReturnFrame frame = make_return_frame(state, 0x77, 0xc0de, top);
    EXPECT_EQ((frame.at + 8) % 16, 0u) << top;
    EXPECT_LE(frame.at + frame.bytes.size(), top);
    EXPECT_EQ(value_at<uint64_t>(frame, 0), 0xc0deu) << "where the call returns to";
    EXPECT_EQ(value_at<uint64_t>(frame, 0x130), 0x1234u) << "what was blocked before";
    EXPECT_EQ(value_at<uint64_t>(frame, 0x138), 0x77u) << "what is blocked until then";
  }
}

// The landing makes one more call before the last; without scheduling to put back it is the last.
TEST(ReturnFrame, SchedulingIsPutBackOnlyWhereItWasChanged) {
  ThreadState state;
  EXPECT_EQ(value_at<uint64_t>(make_return_frame(state, 0, 0, 1 << 20), 0x140),
            uint64_t{SYS_rt_sigreturn});
  state.scheduling = Scheduling();
  state.scheduling->nice = 7;
  ReturnFrame frame = make_return_frame(state, 0, 0, 1 << 20);
  EXPECT_EQ(value_at<uint64_t>(frame, 0x140), uint64_t{SYS_sched_setattr});
  EXPECT_EQ(value_at<Scheduling>(frame, 0x148).nice, 7);
}

TEST(Landing, BeginsWithASystemCallAndNeverRunsOn) {
  const auto& code = landing_code();
  for (uint64_t at : {kLandingSyscall, kLandingReturn + 31}) {
    EXPECT_EQ(code[at], 0x0f);
    EXPECT_EQ(code[at + 1], 0x05);
  }
  EXPECT_EQ(code[kLandingBytes - 9], 0x0f) << "ud2 behind the last call";
  EXPECT_EQ(code[kLandingBytes - 8], 0x0b);
}

}  // namespace
}  // namespace assay::capture
