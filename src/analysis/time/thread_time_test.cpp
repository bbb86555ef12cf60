#include "analysis/time/thread_time.h"

#include <random>

#include <gtest/gtest.h>

#include "analysis/analyse.h"
#include "analysis/testing/fake_run.h"

namespace assay::analysis {
namespace {

using model::WaitFlag;
constexpr int64_t kMs = kNsPerMs;

Report analysed(const FakeRun& run, const Options& options = {}) {
  auto report = analyse(run, options);
  EXPECT_TRUE(report) << report.error().text();
  return report.value_or(Report{});
}

void expect_adds_up(const Report& report) {
  TimeSplit threads, processes, pools;
  for (const ThreadTime& thread : report.threads) {
    EXPECT_EQ(thread.time.sum_ns(), thread.time.wall_ns) << thread.name;
    EXPECT_GE(thread.time.user_ns, 0);
    EXPECT_GE(thread.time.kernel_ns, 0);
    for (int64_t ns : thread.time.blocked_ns) EXPECT_GE(ns, 0);
    threads.add(thread.time);
  }
  for (const ProcessTime& process : report.processes) {
    processes.add(process.time);
    for (const PoolTime& pool : process.pools) pools.add(pool.time);
  }
  for (const TimeSplit* split : {&threads, &processes, &pools}) {
    EXPECT_EQ(split->wall_ns, report.thread_time.wall_ns);
    EXPECT_EQ(split->sum_ns(), report.thread_time.wall_ns);
    EXPECT_EQ(split->runqueue_ns, report.thread_time.runqueue_ns);
  }
}

class ThreadTimeTest : public ::testing::Test {
 protected:
  ThreadTimeTest() {
    process = run.add_process(100, "/opt/server");
    thread = run.add_thread(process, 101, "worker-1", "worker-*");
    futex = run.stack({"main", "work", "libc.so.6:pthread_mutex_lock", "k:futex_wait_queue"});
    sleep = run.stack({"main", "k:io_schedule"});
  }
  const TimeSplit& time(const Report& report) { return report.threads.at(0).time; }

  FakeRun run;
  model::ProcessId process;
  model::ThreadId thread;
  model::StackId futex, sleep;
};

TEST_F(ThreadTimeTest, WhatLiesBetweenWaitsIsRunning) {
  run.add_wait(thread, futex, 100 * kMs, 200 * kMs);
  run.add_wait(thread, sleep, 500 * kMs, 100 * kMs);
  Report report = analysed(run);
  expect_adds_up(report);
  EXPECT_EQ(time(report).wall_ns, 1000 * kMs);
  EXPECT_EQ(time(report).running_ns(), 700 * kMs);
  EXPECT_EQ(time(report).of(BlockKind::lock), 200 * kMs);
  EXPECT_EQ(time(report).of(BlockKind::disk), 100 * kMs);
}

TEST_F(ThreadTimeTest, WaitsAreClippedToTheWindowAndTheThreadsLife) {
  run.edit().info.window_begin_ns = 0;
  auto brief = run.add_thread(process, 102, "brief", "", 300 * kMs, 700 * kMs);
  run.add_wait(thread, futex, -500 * kMs, 600 * kMs, {WaitFlag::open_start});
  run.add_wait(thread, sleep, 900 * kMs, 5000 * kMs, {WaitFlag::open_end});
  run.add_wait(brief, sleep, 200 * kMs, 200 * kMs);
  run.add_wait(brief, sleep, 650 * kMs, 500 * kMs);
  Report report = analysed(run);
  expect_adds_up(report);
  EXPECT_EQ(report.threads[0].time.of(BlockKind::lock), 100 * kMs);
  EXPECT_EQ(report.threads[0].time.of(BlockKind::disk), 100 * kMs);
  EXPECT_EQ(report.threads[1].time.wall_ns, 400 * kMs);
  EXPECT_EQ(report.threads[1].time.of(BlockKind::disk), 150 * kMs);
  EXPECT_EQ(report.off_cpu.paths.at(0).cut, 3u);
}

TEST_F(ThreadTimeTest, PreemptionIsRunQueueAndNotBlocking) {
  run.add_wait(thread, futex, 100 * kMs, 50 * kMs, {WaitFlag::preempted});
  run.add_wait(thread, futex, 200 * kMs, 30 * kMs, {WaitFlag::new_thread});
  Report report = analysed(run);
  expect_adds_up(report);
  EXPECT_EQ(time(report).runqueue_ns, 80 * kMs);
  EXPECT_EQ(time(report).blocked_total_ns(), 0);
  EXPECT_TRUE(report.off_cpu.paths.empty());
}

TEST_F(ThreadTimeTest, AMeasuredWakeUpSplitsItsWait) {
  auto& wait = run.add_wait(thread, futex, 100 * kMs, 100 * kMs, {WaitFlag::runqueue_known});
  wait.runqueue_ns = 20 * kMs;
  // The queueing part ends at 1,050 ms, of which the window holds 1,000 − 990.
  auto& late = run.add_wait(thread, futex, 900 * kMs, 150 * kMs, {WaitFlag::runqueue_known});
  late.runqueue_ns = 60 * kMs;
  Report report = analysed(run);
  expect_adds_up(report);
  EXPECT_EQ(time(report).runqueue_ns, 30 * kMs);
  EXPECT_EQ(time(report).of(BlockKind::lock), 170 * kMs);
  EXPECT_EQ(report.off_cpu.time_ns, 170 * kMs);
}

TEST_F(ThreadTimeTest, RunDelayIsSharedOutByWakeUps) {
  for (int i = 0; i < 10; ++i) run.add_wait(thread, futex, (i + 1) * 10 * kMs, 5 * kMs);
  run.add_wait(thread, sleep, 200 * kMs, 500 * kMs);
  run.add_wait(thread, futex, 800 * kMs, 20 * kMs, {WaitFlag::preempted});
  run.add_series(model::SeriesScope::thread, thread.value, "run_delay",
                 {{0, 7}, {1000 * kMs, 7 + 42 * kMs}});
  Report report = analysed(run);
  expect_adds_up(report);
  // 42 ms less 20 preempted, over 11 wake-ups: 2 ms each, however long the sleep.
  EXPECT_EQ(time(report).runqueue_ns, 42 * kMs);
  EXPECT_EQ(time(report).of(BlockKind::lock), 30 * kMs);
  EXPECT_EQ(time(report).of(BlockKind::disk), 498 * kMs);
}

TEST_F(ThreadTimeTest, RunDelayNeverExceedsTheWaits) {
  run.add_wait(thread, futex, 10 * kMs, 5 * kMs);
  run.add_wait(thread, sleep, 20 * kMs, 10 * kMs);
  run.add_series(model::SeriesScope::thread, thread.value, "run_delay",
                 {{0, 0}, {1000 * kMs, 900 * kMs}});
  Report report = analysed(run);
  expect_adds_up(report);
  EXPECT_EQ(time(report).runqueue_ns, 15 * kMs);
}

TEST_F(ThreadTimeTest, SamplesDivideRunningAndFewFallBackToTheKernelsAccount) {
  auto user = run.stack({"main", "work"}), kernel = run.stack({"main", "k:copy_to_user"});
  run.add_samples(thread, user, 30, 10 * kMs);
  run.add_samples(thread, kernel, 10, 10 * kMs);
  auto few = run.add_thread(process, 102, "few");
  run.add_samples(few, user, 19, 10 * kMs);
  run.add_series(model::SeriesScope::thread, few.value, "utime", {{0, 0}, {900 * kMs, 100 * kMs}});
  run.add_series(model::SeriesScope::thread, few.value, "stime", {{0, 0}, {900 * kMs, 300 * kMs}});
  auto none = run.add_thread(process, 103, "none");
  run.add_wait(none, sleep, 0, 500 * kMs);
  Report report = analysed(run);
  expect_adds_up(report);
  std::map<pid_t, TimeSplit> by_tid;
  for (const ThreadTime& row : report.threads) by_tid[row.tid] = row.time;
  EXPECT_EQ(by_tid[101].kernel_ns, 250 * kMs);
  EXPECT_EQ(by_tid[102].kernel_ns, 750 * kMs);
  // No evidence of its own: as its process, 10 of 59 samples.
  EXPECT_EQ(by_tid[103].kernel_ns, std::llround(500e6 * 10 / 59));
}

TEST_F(ThreadTimeTest, OverlapsAreCutAndCounted) {
  run.add_wait(thread, futex, 100 * kMs, 100 * kMs);
  run.add_wait(thread, sleep, 150 * kMs, 100 * kMs);
  run.add_wait(thread, sleep, 160 * kMs, 20 * kMs);
  Report report = analysed(run);
  expect_adds_up(report);
  EXPECT_EQ(time(report).of(BlockKind::lock), 100 * kMs);
  EXPECT_EQ(time(report).of(BlockKind::disk), 50 * kMs);
  EXPECT_EQ(report.quality.accounting.overlapping_waits, 2u);
  EXPECT_EQ(report.quality.accounting.overlapping_ns, 70 * kMs);
}

TEST_F(ThreadTimeTest, TheKernelsAccountIsComparedOverItsOwnReadings) {
  run.add_wait(thread, futex, 0, 500 * kMs);
  // Read at 200 and 900 ms: 300 waiting, 400 running; the kernel says 386.
  run.add_series(model::SeriesScope::thread, thread.value, "run",
                 {{200 * kMs, 50}, {900 * kMs, 50 + 386 * kMs}});
  Report report = analysed(run);
  const Accounting& accounting = report.quality.accounting;
  EXPECT_EQ(accounting.threads_checked, 1u);
  EXPECT_NEAR(accounting.error_share, 14.0 / 700, 1e-9);
  EXPECT_NEAR(accounting.worst_share, 14.0 / 700, 1e-9);
  EXPECT_EQ(accounting.worst_tid, 101);
}

TEST_F(ThreadTimeTest, AThreadNeverSeenIsNotCalledRunning) {
  Report report = analysed(run);
  expect_adds_up(report);
  EXPECT_EQ(time(report).of(BlockKind::unknown), 1000 * kMs);
  EXPECT_EQ(report.quality.accounting.threads_unseen, 1u);
  // Unless the kernel says that it ran.
  run.add_series(model::SeriesScope::thread, thread.value, "run",
                 {{0, 0}, {1000 * kMs, 999 * kMs}});
  EXPECT_EQ(time(analysed(run)).running_ns(), 1000 * kMs);
}

TEST_F(ThreadTimeTest, HostileNumbersStillAddUp) {
  run.add_wait(thread, futex, INT64_MAX - 5, INT64_MAX);
  run.add_wait(thread, futex, -10, INT64_MAX, {WaitFlag::runqueue_known}).runqueue_ns = -7;
  run.add_wait(thread, futex, 50, -20);
  run.add_wait({77}, futex, 50, 20);
  run.add_sample({77}, futex, 5, 10);
  run.add_sample(thread, {999}, 5, 10);
  run.add_thread({55}, 104, "lost", "", 2000 * kMs, 1 * kMs);
  Report report = analysed(run);
  expect_adds_up(report);
  EXPECT_EQ(report.quality.orphans, 2u);
}

// Any waits at all, in order or not: the parts are exact and never negative.
TEST_F(ThreadTimeTest, RandomWaitsAddUp) {
  std::mt19937_64 random(42);
  for (int round = 0; round < 50; ++round) {
    FakeRun any;
    any.edit().info.window_begin_ns = 100;
    any.edit().info.window_end_ns = 10'000;
    auto parent = any.add_process(1, "/bin/x");
    auto path = any.stack({"main", "k:ep_poll"});
    for (int t = 0; t < 5; ++t) {
      auto id = any.add_thread(parent, t, "t", "t-*", static_cast<TimeNs>(random() % 5000),
                               static_cast<TimeNs>(random() % 12'000));
      TimeNs at = 0;
      for (int w = 0; w < 40; ++w) {
        at += static_cast<TimeNs>(random() % 400) - (random() % 8 == 0 ? 300 : 0);
        auto& wait = any.add_wait(id, path, at, static_cast<int64_t>(random() % 300));
        wait.flags = static_cast<uint16_t>(random() % 64);
        wait.runqueue_ns = static_cast<int64_t>(random() % 400);
      }
      any.add_series(model::SeriesScope::thread, id.value, "run_delay",
                     {{200, 0}, {9000, static_cast<int64_t>(random() % 9000)}});
      any.add_samples(id, path, static_cast<int>(random() % 40), 10);
    }
    expect_adds_up(analysed(any));
  }
}

TEST_F(ThreadTimeTest, PoolsAndProcessesAreGrouped) {
  auto second = run.add_process(200, "/opt/server", "worker 0");
  auto busy = run.add_thread(second, 201, "worker-1", "worker-*");
  auto idle = run.add_thread(second, 202, "worker-2", "worker-*");
  run.add_samples(busy, run.stack({"main"}), 20, 10 * kMs);
  run.add_wait(idle, sleep, 0, 1000 * kMs);
  run.add_wait(thread, sleep, 0, 900 * kMs);
  Report report = analysed(run);
  expect_adds_up(report);
  ASSERT_EQ(report.processes.size(), 2u);
  EXPECT_EQ(report.processes[0].process.pid, 200);
  ASSERT_EQ(report.processes[0].pools.size(), 1u);
  EXPECT_EQ(report.processes[0].pools[0].threads, 2u);
  EXPECT_EQ(report.threads[0].tid, 201);
  EXPECT_EQ(report.threads[0].role, "worker 0");

  Options only;
  only.selection.pids = {100};
  Report part = analysed(run, only);
  expect_adds_up(part);
  EXPECT_EQ(part.threads.size(), 1u);
  EXPECT_EQ(part.selection, "pid 100");
  EXPECT_EQ(part.on_cpu.samples, 0u);
  only.selection.pids = {9};
  auto nothing = analyse(run, only);
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().what.find("pid 9"), std::string::npos);
}

}  // namespace
}  // namespace assay::analysis
