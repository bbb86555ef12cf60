// Targets that must not be harmed by attaching and detaching the heap sampler, whichever process is
// killed meanwhile.
#include <atomic>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/heap/injector.h"
#include "harness.h"
#include "os/process/procfs.h"

namespace assay::kernel_test {
namespace {

class AttachCycles : public testing::TestWithParam<const char*> {};

TEST_P(AttachCycles, LeaveTheTargetUnharmed) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  Background target({program("attach_target"), GetParam()});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  capture::InjectOptions options;
  options.library = HEAP_LIBRARY;
  options.rate_bytes = 64 << 10;
  for (int cycle = 0; cycle < 8; ++cycle) {
    auto injected = capture::inject_sampler(target.pid(), options);
    ASSERT_TRUE(injected) << injected.error().text();
    EXPECT_TRUE(injected->channel->ready());
    injected->channel->start_sampling();
    usleep(5'000);
    auto removed = capture::remove_sampler(target.pid(), options.library);
    ASSERT_TRUE(removed) << removed.error().text();
  }
  usleep(100'000);
  target.signal(SIGTERM);
  Finished ended = target.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
}
INSTANTIATE_TEST_SUITE_P(Heap, AttachCycles,
                         testing::Values("busy", "idle", "forking", "dlopening", "signals",
                                         "threads", "filtered"),
                         [](const auto& mode) { return mode.param; });

TEST(Heap, ChildrenDoNotWaitForALoaderThatStayedInTheirParent) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  Background target({program("attach_target"), "holding"});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  // Longer than slots are looked at again, and with a sample in every child.
  Finished done = run({assay(), "heap", "-q", "--rate", "4k", "-o", run_file("holding"), "--for",
                       "2500ms", "--pid", std::to_string(target.pid())},
                      60);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  target.signal(SIGTERM);
  Finished ended = target.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
}

// Its guard may finish its work after that: a later attach waits for it and is not refused.
TEST(Heap, OneThatWasKilledWhileItAttachedIsNotInTheWay) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  Background target({program("attach_target"), "busy"});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  std::string pid = std::to_string(target.pid());
  for (int i = 0; i < 6; ++i) {
    Background killed({assay(), "heap", "-q", "-o", run_file("early" + std::to_string(i)), "--for",
                       "60s", "--pid", pid});
    usleep(30'000 + i * 25'000);
    killed.signal(SIGKILL);
    killed.wait();
    Finished done = run({assay(), "heap", "-q", "-o", run_file("next" + std::to_string(i)), "--for",
                         "200ms", "--pid", pid},
                        60);
    EXPECT_EQ(done.exit_code, 0) << i << ": " << done.err;
  }
  target.signal(SIGTERM);
  EXPECT_EQ(target.wait().exit_code, 0);
}

// Waits until the target's main thread is traced, with a limit.
void wait_for_tracer(pid_t pid) {
  for (int look = 0; look < 10'000; ++look) {
    auto status = os::ProcFs().status(pid);
    if (!status || status->tracer != 0) return;
    usleep(20);
  }
}

// Threads with raised priority: a held thread has it until it is released.
int favoured_threads(pid_t pid) {
  int count = 0;
  for (pid_t tid : os::ProcFs().tids(pid)) {
    errno = 0;
    count += getpriority(PRIO_PROCESS, static_cast<id_t>(tid)) < 0 && errno == 0 ? 1 : 0;
  }
  return count;
}

// The moments of kills and stops are random; this makes them the same every time.
constexpr unsigned kSeed = 4711;

// When Assay is killed at any moment of attaching, the target survives: the guard, which is not
// killed, restores it.
class KilledWhileAttaching : public testing::TestWithParam<const char*> {};

TEST_P(KilledWhileAttaching, LeavesTheTargetUnharmed) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  Background target({program("attach_target"), GetParam()});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  std::string pid = std::to_string(target.pid());
  unsigned random = kSeed;
  constexpr int kKills = 60;
  SCOPED_TRACE(fmt::format("seed {}, {} tries", kSeed, kKills));
  for (int i = 0; i < kKills; ++i) {
    Background killed({assay(), "heap", "-q", "-o", run_file("killed" + std::to_string(i)), "--for",
                       "60s", "--pid", pid});
    random = random * 1664525 + 1013904223;
    if (i % 3 == 0 || std::string(GetParam()) == "threads") {
      usleep(2'000 + random % 60'000);  // starting, looking at the program, attaching, sampling
    } else {
      wait_for_tracer(target.pid());
      usleep(random % (i % 3 == 1 ? 2'000 : 20'000));  // a breakpoint, or a thread's calls
    }
    killed.signal(SIGKILL);
    killed.wait();
    ASSERT_EQ(kill(target.pid(), 0), 0) << "gone after " << i << " kills";
    ASSERT_NE(os::ProcFs().stat(target.pid())->state, 'Z') << "dead after " << i << " kills";
  }
  usleep(500'000);
  EXPECT_EQ(favoured_threads(target.pid()), 0);
  target.signal(SIGTERM);
  Finished ended = target.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
}
INSTANTIATE_TEST_SUITE_P(Heap, KilledWhileAttaching, testing::Values("busy", "idle", "threads"),
                         [](const auto& mode) { return mode.param; });

char state_of(pid_t pid) {
  auto stat = os::ProcFs().stat(pid);
  return stat ? stat->state : '?';
}

// The process that attaches: our child, and not the target. 0: it has ended already.
pid_t find_guard(pid_t target, const std::atomic<bool>& is_gone) {
  while (!is_gone) {
    std::string own = std::to_string(getpid());
    std::ifstream children("/proc/" + own + "/task/" + own + "/children");
    for (pid_t pid = 0; children >> pid;)
      if (pid != target) return pid;
    usleep(20);
  }
  return 0;
}

// The tracer may be killed, too: threads restore themselves.
class KilledGuard : public testing::TestWithParam<const char*> {};

TEST_P(KilledGuard, LeavesTheTargetUnharmed) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  Background target({program("attach_target"), GetParam()});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  capture::InjectOptions options;
  options.library = HEAP_LIBRARY;
  unsigned random = kSeed;
  int killed = 0;
  // On a busy machine many guards finish before the thread that kills them gets a CPU.
  constexpr int kKills = 12, kTries = 80;
  SCOPED_TRACE(fmt::format("seed {}, {} tries", kSeed, kTries));
  for (int i = 0; i < kTries && killed < kKills; ++i) {
    random = random * 1664525 + 1013904223;
    constexpr useconds_t kLongest[] = {300, 1'500, 6'000};  // all of it takes about 2,000
    useconds_t delay = (random >> 8) % kLongest[i % 3];
    std::atomic<bool> is_gone = false;
    std::thread killer([&] {
      setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), -20);  // it has to be in time
      pid_t guard = find_guard(target.pid(), is_gone);
      usleep(delay);  // seizing, a breakpoint, a thread's calls, its release
      if (guard != 0) kill(guard, SIGKILL);
    });
    auto injected = capture::inject_sampler(target.pid(), options);
    is_gone = true;
    killer.join();
    if (!injected) ++killed;
    ASSERT_NE(state_of(target.pid()), 'Z') << "dead after " << i << " kills: " << target.wait().out;
    usleep(60'000);  // a sleep that was restarted twice appears under another name
    if (injected) (void)capture::remove_sampler(target.pid(), options.library);
  }
  EXPECT_GT(killed, kKills / 3) << "guards are killed before they are done";
  auto injected = capture::inject_sampler(target.pid(), options);
  EXPECT_TRUE(injected) << "and it can still be attached to: " << injected.error().text();
  auto removed = capture::remove_sampler(target.pid(), options.library);
  EXPECT_TRUE(removed) << removed.error().text();
  usleep(200'000);
  EXPECT_EQ(favoured_threads(target.pid()), 0);
  target.signal(SIGTERM);
  Finished ended = target.wait();
  // epoll_wait returns EINTR after a stop, as after SIGSTOP and SIGCONT, unless the injector
  // prevents it.
  bool is_interrupted = ended.out.find("Interrupted system call") != std::string::npos;
  if (!is_interrupted || std::string(GetParam()) != "idle") {
    EXPECT_EQ(ended.exit_code, 0) << ended.out << killed << " killed";
  }
}
INSTANTIATE_TEST_SUITE_P(Heap, KilledGuard, testing::Values("busy", "idle", "threads"),
                         [](const auto& mode) { return mode.param; });

// The next Assay waits for a guard that is still working.
TEST(Heap, AnAttachWaitsForTheGuardOfAnEarlierOne) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  Background target({program("attach_target"), "idle"});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  // A guard that holds the target for a while, as one under load does.
  pid_t guard = fork();
  if (guard == 0) {
    (void)capture::run_guarded([&](const capture::IsAbandoned&) -> Result<capture::GuardedResult> {
      ptrace(PTRACE_SEIZE, target.pid(), nullptr, nullptr);
      usleep(700'000);
      return capture::GuardedResult{};
    });
    _exit(0);
  }
  wait_for_tracer(target.pid());
  capture::InjectOptions options;
  options.library = HEAP_LIBRARY;
  int waits = 0;
  options.on_wait = [&] { ++waits; };
  auto injected = capture::inject_sampler(target.pid(), options);
  EXPECT_TRUE(injected) << injected.error().text();
  EXPECT_EQ(waits, 1) << "told once";
  waitpid(guard, nullptr, 0);
  EXPECT_TRUE(capture::remove_sampler(target.pid(), options.library));
  target.signal(SIGTERM);
  Finished ended = target.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
}

// Stopped (as by Ctrl-Z) at any moment of attaching: either Assay reports it, or the sampler is
// loaded; the target stays stopped until it is continued.
TEST(Heap, AStopWhileAttachingIsHeldAndHarmsNothing) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  for (const char* mode : {"busy", "idle", "threads"}) {
    Background target({program("attach_target"), mode});
    ASSERT_NE(target.read_line().find("ready"), std::string::npos);
    capture::InjectOptions options;
    options.library = HEAP_LIBRARY;
    unsigned random = kSeed;
    constexpr int kTries = 25;
    SCOPED_TRACE(fmt::format("seed {}, {} tries", kSeed, kTries));
    int attached = 0;
    for (int i = 0; i < kTries; ++i) {
      random = random * 1664525 + 1013904223;
      useconds_t delay = 500 + (random >> 8) % (i % 2 == 0 ? 15'000 : 80'000);
      std::thread stopper([&] {
        usleep(delay);
        target.signal(SIGSTOP);
      });
      auto injected = capture::inject_sampler(target.pid(), options);
      stopper.join();
      for (int wait = 0; wait < 200 && state_of(target.pid()) != 'T'; ++wait) usleep(1000);
      EXPECT_EQ(state_of(target.pid()), 'T') << mode << " " << i;
      target.signal(SIGCONT);
      if (!injected) {
        EXPECT_NE(injected.error().what.find("is stopped"), std::string::npos)
            << mode << " " << i << ": " << injected.error().text();
        continue;
      }
      ++attached;
      auto removed = capture::remove_sampler(target.pid(), options.library);
      ASSERT_TRUE(removed) << removed.error().text();
    }
    EXPECT_GT(attached, 0) << mode;
    target.signal(SIGTERM);
    Finished ended = target.wait();
    if (std::string(mode) != "idle") {  // whose sleeps a stop may well end early
      EXPECT_EQ(ended.exit_code, 0) << ended.out;
    }
  }
}

}  // namespace
}  // namespace assay::kernel_test
