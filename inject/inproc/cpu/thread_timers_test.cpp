// Timers of many threads that start and end: each is found again, and none is left over.
#include "inject/inproc/cpu/thread_timers.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "inject/inproc/cpu/own_threads.h"

namespace assay::inproc {
namespace {

// Each timer takes a signal of the user's limit; when the limit is reached, no timer can be
// created.
TEST(ThreadTimers, EndedThreadsGiveTheirTimersBack) {
  signal(SIGPROF, SIG_IGN);
  ThreadTimers timers;
  ASSERT_TRUE(timers.start({SIGPROF, 1'000'000'000, false}));
  uint32_t before = timers.covered();
  for (int round = 0; round < 50; ++round) {
    std::vector<std::thread> threads;
    std::atomic<int> without = 0, here = 0;
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back([&] {
        if (timers.cover(current_tid(), {1'000'000'000, 1'000'000'000}) == ThreadTimers::kNoTimer)
          ++without;
        for (++here; here < 20;) std::this_thread::yield();
        if (timers.cover(current_tid()) == ThreadTimers::kNoTimer) ++without;
        timers.uncover(current_tid());
        timers.uncover(current_tid());
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(without, 0);
  }
  EXPECT_EQ(timers.covered(), before + 50 * 20 * 2);
  EXPECT_EQ(timers.refused(), 0U);
  timers.stop();
  EXPECT_EQ(timers.cover(current_tid()), ThreadTimers::kNoTimer);
}

int64_t burn(int64_t ns) {
  int64_t begin_ns = 0, used_ns = 0;
  for (timespec now{}; used_ns < ns;
       used_ns = now.tv_sec * 1'000'000'000 + now.tv_nsec - begin_ns) {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    if (begin_ns == 0) begin_ns = now.tv_sec * 1'000'000'000 + now.tv_nsec;
  }
  return used_ns;
}

TEST(ThreadTimers, TimeWithTheSignalBlockedIsKnown) {
  signal(SIGPROF, SIG_IGN);
  ThreadTimers timers;
  std::atomic<int> step = 0;
  int64_t after_ns = 0, one_ns = 0;
  std::thread blocking([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    burn(20'000'000);  // before the profile: not its time
    for (step = 1; step < 2;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    burn(200'000'000);
    note_thread_seen();
    after_ns = burn(150'000'000);
    one_ns = timers.unseen_ns(current_tid());
    for (step = 3; step < 4;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  while (step < 1) std::this_thread::yield();
  ASSERT_TRUE(timers.start({SIGPROF, 10'000'000, false}));
  step = 2;
  burn(100'000'000);  // this thread does not block it: its time is no loss
  while (step < 3) std::this_thread::yield();
  int64_t unseen_ns = timers.unseen_ns();
  timers.stop();
  EXPECT_EQ(timers.unseen_ns(), 0);
  step = 4;
  blocking.join();
  for (int64_t ns : {one_ns, unseen_ns}) {
    EXPECT_GE(ns, after_ns - 1'000);
    EXPECT_LT(ns, after_ns + 50'000'000);
  }
}

}  // namespace
}  // namespace assay::inproc
