// Timers of many threads that come and go: each is found again, and none is left behind.
#include "inject/inproc/thread_timers.h"

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "inject/inproc/own_threads.h"

namespace assay::inproc {
namespace {

// A process's timers hold signals of its user's limit; enough of them, and none can be made.
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

}  // namespace
}  // namespace assay::inproc
