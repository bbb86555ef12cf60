#include "analysis/locks/semaphore_locks.h"

#include <gtest/gtest.h>

#include "analysis/analyse.h"
#include "analysis/testing/fake_run.h"

namespace assay::analysis {
namespace {

constexpr uint16_t kFutex = 202;
constexpr uint64_t kAddress = 0x7000;

// Four threads of a pool that wait for the same semaphore, `waits` times each; `waker_of` tells who
// ends the wait of a thread.
Report report_of(int waits, const std::function<model::ThreadId(int)>& waker_of) {
  FakeRun run;
  auto process = run.add_process(1, "/opt/server");
  std::vector<model::ThreadId> pool;
  for (int i = 0; i < 4; ++i) pool.push_back(run.add_thread(process, 10 + i, "worker", "worker"));
  run.add_thread(process, 20, "main", "main");
  auto stack = run.stack({"main", "thread_run", "acquire_timed", "__new_sem_wait_slow64",
                          "k:do_syscall_64", "k:futex_wait", "k:schedule"});
  int64_t each = kNsPerSecond / (waits + 1);
  for (int i = 0; i < 4; ++i) {
    for (int n = 0; n < waits; ++n) {
      model::Wait& wait = run.add_wait(pool[static_cast<size_t>(i)], stack, n * each, each / 2);
      wait.syscall = kFutex;
      wait.arg = kAddress;
      wait.waker = waker_of(i);
    }
  }
  return *analyse(run, {});
}

int64_t lock_ns(const Report& report) {
  return report.thread_time.blocked_ns[static_cast<size_t>(BlockKind::lock)];
}

TEST(SemaphoreLocks, OneThatItsTakersReleaseIsALock) {
  Report report =
      report_of(50, [](int i) { return model::ThreadId{static_cast<uint32_t>((i + 1) % 4)}; });
  EXPECT_GT(lock_ns(report), kNsPerSecond);
  ASSERT_EQ(report.locks.size(), 1u);
  EXPECT_EQ(report.locks[0].waits, 200u);
}

TEST(SemaphoreLocks, OneThatAnotherThreadPostsHandsWorkOver) {
  Report report = report_of(50, [](int) { return model::ThreadId{4}; });
  EXPECT_EQ(lock_ns(report), 0);
  EXPECT_TRUE(report.locks.empty());
}

TEST(SemaphoreLocks, WithoutWakersOrWithFewNothingIsClaimed) {
  EXPECT_EQ(lock_ns(report_of(50, [](int) { return model::Wait::kNoWaker; })), 0);
  EXPECT_EQ(lock_ns(report_of(
                3, [](int i) { return model::ThreadId{static_cast<uint32_t>((i + 1) % 4)}; })),
            0);
}

}  // namespace
}  // namespace assay::analysis
