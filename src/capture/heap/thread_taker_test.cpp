// ThreadTaker and the injector's refusals, on real children and with a plan made by hand.
#include "capture/heap/thread_taker.h"

#include <cstddef>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "capture/heap/injector.h"
#include "capture/heap/testing/traced_child.h"
#include "os/trace/target_memory.h"

extern "C" const char assay_test_landing[];  // hijacked_thread_test.cpp

namespace assay::capture {
namespace {

using fake::come_by;
using fake::run_busily;
using fake::SharedCounters;
using fake::TracedChild;
using ::testing::HasSubstr;

const uint64_t kComeBy = reinterpret_cast<uint64_t>(&come_by);

int poll_often(SharedCounters& shared) {
  shared.ready = true;
  while (!shared.stop) {
    if (::poll(nullptr, 0, 100) != 0) return 2;
    shared.rounds += 1;
  }
  return 0;
}

InjectionPlan plan_for(const TracedChild& child) {
  InjectionPlan plan;
  plan.pid = child.pid();
  plan.start_ticks = os::ProcFs().stat(child.pid())->start_ticks;
  plan.malloc_entry = kComeBy;
  plan.landing = reinterpret_cast<uint64_t>(&assay_test_landing);
  plan.quiet_signal = SIGURG;
  return plan;
}

const IsAbandoned kWanted = [] { return false; };

bool lacks_ptrace(const Result<InjectPause>& result) {
  return !result && (result.error().code == EPERM || result.error().code == EACCES);
}

TEST(ThreadTaker, TakesAThreadThatWaits) {
  TracedChild child(poll_often);
  InjectionPlan plan = plan_for(child);
  int64_t said = 0;
  auto pause = ThreadTaker(plan, kWanted).run([&](HijackedThread& thread) -> Result<void> {
    auto pid = thread.syscall(SYS_getpid, {});
    if (!pid) return std::unexpected(pid.error());
    said = *pid;
    return {};
  });
  if (lacks_ptrace(pause)) GTEST_SKIP() << "skipped: " << pause.error().text();
  ASSERT_TRUE(pause) << pause.error().text();
  EXPECT_EQ(said, child.pid());
  EXPECT_FALSE(pause->at_malloc);
  EXPECT_GT(pause->ns, 0);
  EXPECT_TRUE(child.goes_on());
  EXPECT_EQ(child.end(), "exit 0") << "2: poll() was interrupted";
}

TEST(ThreadTaker, TakesABusyThreadAtTheEntryOfMalloc) {
  TracedChild child(run_busily);
  InjectionPlan plan = plan_for(child);
  auto pause = ThreadTaker(plan, kWanted).run([](HijackedThread&) { return Result<void>(); });
  if (lacks_ptrace(pause)) GTEST_SKIP() << "skipped: " << pause.error().text();
  ASSERT_TRUE(pause) << pause.error().text();
  EXPECT_TRUE(pause->at_malloc);
  uint64_t theirs = 0, ours = 0;
  ASSERT_TRUE(os::read_target_whole(child.pid(), kComeBy, &theirs, sizeof theirs));
  std::memcpy(&ours, reinterpret_cast<const void*>(kComeBy), sizeof ours);
  EXPECT_EQ(theirs, ours) << "its code is as it was";
  EXPECT_TRUE(child.goes_on());
  EXPECT_EQ(child.end(), "exit 0");
}

TEST(ThreadTaker, WorkThatFailsIsToldAndTheThreadGoesOn) {
  TracedChild child(poll_often);
  InjectionPlan plan = plan_for(child);
  auto pause = ThreadTaker(plan, kWanted).run([](HijackedThread&) -> Result<void> {
    return fail_with_remedy("no library", "build it");
  });
  if (lacks_ptrace(pause)) GTEST_SKIP() << "skipped: " << pause.error().text();
  ASSERT_FALSE(pause);
  EXPECT_EQ(pause.error().what, "no library");
  EXPECT_EQ(pause.error().remedy, "build it");
  EXPECT_EQ(child.end(), "exit 0");
}

TEST(ThreadTaker, BeginsNothingWhenItsCallerIsGone) {
  TracedChild child(poll_often);
  InjectionPlan plan = plan_for(child);
  bool used = false;
  IsAbandoned is_abandoned = [] { return true; };
  auto pause = ThreadTaker(plan, is_abandoned).run([&](HijackedThread&) {
    used = true;
    return Result<void>();
  });
  ASSERT_FALSE(pause);
  EXPECT_FALSE(used);
  EXPECT_THAT(pause.error().remedy, HasSubstr("assay heap -- COMMAND"));
}

TEST(ThreadTaker, AStoppedProcessIsRefusedWithWhatContinuesIt) {
  TracedChild child(poll_often);
  InjectionPlan plan = plan_for(child);
  ASSERT_EQ(::kill(child.pid(), SIGSTOP), 0);
  ASSERT_TRUE(fake::eventually([&] { return child.state() == 'T'; }));
  auto pause = ThreadTaker(plan, kWanted).run([](HijackedThread&) { return Result<void>(); });
  ASSERT_FALSE(pause);
  EXPECT_THAT(pause.error().what, HasSubstr("is stopped"));
  EXPECT_EQ(pause.error().remedy, fmt::format("kill -CONT {}", child.pid()));
}

TEST(ThreadTaker, AnotherProcessUnderTheSameNumberIsNotTouched) {
  TracedChild child(poll_often);
  InjectionPlan plan = plan_for(child);
  plan.start_ticks += 1;
  bool used = false;
  auto pause = ThreadTaker(plan, kWanted).run([&](HijackedThread&) {
    used = true;
    return Result<void>();
  });
  ASSERT_FALSE(pause);
  EXPECT_FALSE(used);
  if (lacks_ptrace(pause)) GTEST_SKIP() << "skipped: " << pause.error().text();
  EXPECT_THAT(pause.error().what, HasSubstr("is gone"));
  EXPECT_TRUE(child.goes_on());
}

int forbid_memory_files(SharedCounters& shared) {
  sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_memfd_create},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  sock_fprog filter{4, program};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) shared.told = 1;
  return poll_often(shared);
}

TEST(ThreadTaker, AsksTheFiltersBeforeAnythingIsCalled) {
  TracedChild child(forbid_memory_files);
  if (::geteuid() != 0 || child.shared().told == 1)
    GTEST_SKIP() << "skipped: filters are set, and read, by root";
  InjectionPlan plan = plan_for(child);
  plan.is_filtered = true;
  bool used = false;
  auto pause = ThreadTaker(plan, kWanted).run([&](HijackedThread&) {
    used = true;
    return Result<void>();
  });
  ASSERT_FALSE(pause);
  EXPECT_FALSE(used);
  if (pause.error().what.find("cannot be read") != std::string::npos)
    GTEST_SKIP() << "skipped: this kernel does not show filters";
  EXPECT_THAT(pause.error().what, HasSubstr("does not allow memfd_create"));
  EXPECT_THAT(pause.error().remedy, HasSubstr("assay heap -- COMMAND"));
  EXPECT_EQ(child.end(), "exit 0");
}

TEST(Injector, SaysWhyItDoesNotBegin) {
  TracedChild child(poll_often);
  InjectOptions options;
  options.library = "/nonexistent/libassay_heap.so";
  options.start_ticks = os::ProcFs().stat(child.pid())->start_ticks + 1;
  auto another = inject_sampler(child.pid(), options);
  ASSERT_FALSE(another);
  EXPECT_THAT(another.error().what, HasSubstr("is gone")) << "the pid is another process's now";
  options.start_ticks = 0;
  EXPECT_FALSE(inject_sampler(child.pid(), options)) << "there is no such library";
  EXPECT_FALSE(remove_sampler(child.pid(), options.library)) << "it has no sampler in it";
  auto channel = open_forked_channel(os::ProcFs(), child.pid());
  ASSERT_FALSE(channel);
  EXPECT_THAT(channel.error().what, HasSubstr("has no channel"));
  EXPECT_EQ(child.end(), "exit 0");
}

}  // namespace
}  // namespace assay::capture
