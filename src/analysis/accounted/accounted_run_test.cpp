#include "analysis/accounted/accounted_run.h"

#include <gmock/gmock.h>

#include "analysis/analyse.h"
#include "analysis/testing/fake_run.h"

namespace assay::analysis {
namespace {

// A worker that waits for work in its loop, and for a lock below it.
struct Served {
  FakeRun run;
  model::ThreadId thread = run.add_thread(run.add_process(7, "/opt/server"), 7, "worker");
  model::StackId loop = run.stack({"main", "event_base_loop", "epoll_wait", "k:ep_poll"});
  model::StackId lock =
      run.stack({"main", "event_base_loop", "answer", "pthread_mutex_lock", "k:futex_wait"});

  Served() {
    run.add_samples(thread, run.stack({"main", "event_base_loop", "answer", "compress"}), 20,
                    10 * kNsPerMs);
    run.add_wait(thread, loop, 200 * kNsPerMs, 700 * kNsPerMs);
    run.add_wait(thread, lock, 900 * kNsPerMs, 100 * kNsPerMs);
  }
};

bool every(const model::Wait&) {
  return true;
}

int64_t idle_ns(const AccountedRun& accounted) {
  int64_t sum = 0;
  EXPECT_TRUE(accounted.for_each_wait(
      accounted.reader(), accounted.window(), every,
      [&](const AccountedWait& wait) { sum += wait.idle ? wait.wait.duration_ns : 0; }));
  return sum;
}

TEST(AccountedRun, WhatIsIdleIsWhatTheReportCallsThat) {
  Served served;
  AccountedRun accounted(served.run);
  ASSERT_TRUE(accounted.settle());
  EXPECT_EQ(idle_ns(accounted), 700 * kNsPerMs);
  auto report = analyse(served.run, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->thread_time.idle_ns, 700 * kNsPerMs);
}

TEST(AccountedRun, WithoutIdleWaitsKeepTheirKinds) {
  Served served;
  AccountedRun whole(served.run), kinds_only(served.run, {nullptr, false});
  ASSERT_TRUE(whole.settle());
  ASSERT_TRUE(kinds_only.settle());
  EXPECT_EQ(idle_ns(kinds_only), 0);
  auto kinds = [](const AccountedRun& accounted) {
    std::vector<BlockKind> found;
    EXPECT_TRUE(
        accounted.for_each_wait(accounted.reader(), accounted.window(), every,
                                [&](const AccountedWait& wait) { found.push_back(wait.kind); }));
    return found;
  };
  EXPECT_EQ(kinds(whole), (std::vector<BlockKind>{BlockKind::poll, BlockKind::lock}));
  EXPECT_EQ(kinds(kinds_only), kinds(whole));
}

TEST(AccountedRun, EveryPathHasACategoryWithAName) {
  Served served;
  AccountedRun accounted(served.run);
  ASSERT_FALSE(accounted.category_names().empty());
  for (PathIndex path = 1; path < accounted.tree().paths().size(); ++path)
    EXPECT_LT(accounted.category_of(path), accounted.category_names().size());
}

TEST(AccountedRun, RowsOfUnlistedThreadsAreCountedAndLeftOut) {
  Served served;
  served.run.add_wait({99}, served.loop, 100, kNsPerMs);
  served.run.add_sample({99}, served.loop, 100, kNsPerMs);
  AccountedRun accounted(served.run);
  ASSERT_TRUE(accounted.settle());
  EXPECT_EQ(accounted.orphans(), 2u);
  int rows = 0;
  ASSERT_TRUE(accounted.for_each_wait(accounted.reader(), accounted.window(), every,
                                      [&](const AccountedWait&) { ++rows; }));
  EXPECT_EQ(rows, 2);
  ASSERT_TRUE(accounted.for_each_sample(accounted.reader(), accounted.window(),
                                        [&](const model::Sample&) { ++rows; }));
  EXPECT_EQ(rows, 22);
}

TEST(AccountedRun, AnOnlookerSeesEveryRowOnceWaitsFirst) {
  Served served;
  int waits = 0, samples = 0;
  Onlooker onlooker;
  onlooker.wait = [&](const model::Wait&) {
    ++waits;
    EXPECT_EQ(samples, 0);
  };
  onlooker.sample = [&](const model::Sample&) { ++samples; };
  AccountedRun accounted(served.run);
  ASSERT_TRUE(accounted.settle(onlooker));
  EXPECT_EQ(waits, 2);
  EXPECT_EQ(samples, 20);
}

// What waits for work says the whole run; a part of it that is shown has no say in that.
TEST(AccountedRun, ReportsOfThePartsAddUpToTheReportOfTheWhole) {
  Served served;
  FakeRun& run = served.run;
  auto helper = run.add_thread({0}, 8, "helper");
  auto twin = run.add_thread({0}, 9, "worker-2", "worker");
  auto other = run.add_thread(run.add_process(20, "/opt/other"), 20, "other");
  auto tick = run.stack({"main", "tick", "clock_nanosleep", "k:hrtimer_nanosleep"});
  run.add_wait(helper, tick, 0, 900 * kNsPerMs);
  run.add_wait(twin, served.loop, 0, 500 * kNsPerMs);
  run.add_wait(other, served.lock, 100 * kNsPerMs, 300 * kNsPerMs,
               {model::WaitFlag::runqueue_known})
      .runqueue_ns = 50 * kNsPerMs;
  run.add_samples(other, run.stack({"main", "k:copy"}), 30, 10 * kNsPerMs);
  auto whole = analyse(run, {});
  ASSERT_TRUE(whole);
  TimeSplit sum;
  int64_t on_cpu_ns = 0, off_cpu_ns = 0;
  for (pid_t tid : {7, 8, 9, 20}) {
    Options options;
    options.selection.tids = {tid};
    auto part = analyse(run, options);
    ASSERT_TRUE(part);
    sum.add(part->thread_time);
    on_cpu_ns += part->on_cpu.time_ns;
    off_cpu_ns += part->off_cpu.time_ns;
  }
  EXPECT_EQ(sum.wall_ns, whole->thread_time.wall_ns);
  EXPECT_EQ(sum.user_ns, whole->thread_time.user_ns);
  EXPECT_EQ(sum.kernel_ns, whole->thread_time.kernel_ns);
  EXPECT_EQ(sum.runqueue_ns, whole->thread_time.runqueue_ns);
  EXPECT_EQ(sum.idle_ns, whole->thread_time.idle_ns);
  EXPECT_EQ(sum.blocked_ns, whole->thread_time.blocked_ns);
  EXPECT_EQ(on_cpu_ns, whole->on_cpu.time_ns);
  EXPECT_EQ(off_cpu_ns, whole->off_cpu.time_ns);
  EXPECT_GT(sum.idle_ns, 700 * kNsPerMs);
}

}  // namespace
}  // namespace assay::analysis
