#include "analysis/locks/locks.h"

#include <gtest/gtest.h>

#include "analysis/testing/fake_server.h"

namespace assay::analysis {
namespace {

TEST(Locks, AreNamedByTheCallSiteAndToldApartByAddress) {
  FakeServer server(1, 4);
  server.thread("a", "w-*",
                {runs(kCompute, 1), waits(kTakeLock, 3, 0x1000), waits(kTakeLock, 1, 0x2000)});
  Report report = server.report();
  ASSERT_EQ(report.locks.size(), 2u);
  EXPECT_EQ(report.locks[0].name, "lock taken in Table::put");
  EXPECT_EQ(report.locks[0].address, 0x1000u);
  EXPECT_EQ(report.locks[0].waits, 200u);
  EXPECT_EQ(report.locks[0].mean_ns, 3 * kNsPerMs);
  EXPECT_EQ(report.locks[0].max_ns, 3 * kNsPerMs);
  EXPECT_EQ(report.locks[0].waiters[0].file, "/src/server.cpp");
  EXPECT_NEAR(report.locks[0].waited_share, 0.6, 0.01);
  EXPECT_NEAR(report.locks[0].mean_waiters, 1, 0.001);
  EXPECT_EQ(report.locks[0].most_waiters, 1u);
}

TEST(Locks, AGlobalLockHasItsOwnName) {
  FakeServer server(1, 4);
  server.thread("a", "w-*", {runs(kCompute, 1), waits(kTakeLock, 3, 0x1000)});
  server.run().edit().data_names.push_back({{0}, 0x1000, "table_mutex"});
  server.run().edit().data_names.push_back({{7}, 0x1000, "of_nobody"});
  Report report = server.report();
  ASSERT_EQ(report.locks.size(), 1u);
  EXPECT_EQ(report.locks[0].name, "lock table_mutex, taken in Table::put");
}

TEST(Locks, WaitersAtOnceAreCountedWhereTheyOverlap) {
  FakeServer server(1, 4);
  for (int i = 0; i < 3; ++i) {
    server.thread("w" + std::to_string(i), "w-*", {waits(kTakeLock, 5, 0x1000), runs(kCompute, 5)});
  }
  Report report = server.report();
  ASSERT_EQ(report.locks.size(), 1u);
  EXPECT_EQ(report.locks[0].most_waiters, 3u);
  EXPECT_NEAR(report.locks[0].mean_waiters, 3, 0.01);
  EXPECT_NEAR(report.locks[0].waited_share, 0.5, 0.01);
  EXPECT_EQ(report.locks[0].threads, 3u);
}

TEST(Locks, TheSameAddressInAnotherProcessIsAnotherLock) {
  FakeServer server(1, 4);
  server.thread("a", "w-*", {runs(kCompute, 5), waits(kTakeLock, 5, 0x1000)});
  auto other = server.run().add_process(200, "/opt/server", "worker 1");
  server.thread_of(other, "b", "w-*", {runs(kCompute, 5), waits(kTakeLock, 5, 0x1000)});
  EXPECT_EQ(server.report().locks.size(), 2u);
}

// PostgreSQL's processes wait for one another's rows, each asleep on a latch of its own.
TEST(Locks, ALockOfTheProgramsOwnIsOneForAllProcesses) {
  FakeServer server(1, 4);
  const std::vector<std::string> row_lock{
      "main",      "heap_update",          "LockAcquireExtended", "server!fn_45d8a0",
      "ProcSleep", "libc.so.6:epoll_wait", "k:do_epoll_wait"};
  server.thread("a", "w-*", {runs(kCompute, 5), waits(row_lock, 5, 0x1000)});
  auto other = server.run().add_process(200, "/opt/server", "worker 1");
  server.thread_of(other, "b", "w-*", {runs(kCompute, 5), waits(row_lock, 5, 0x2000)});
  Report report = server.report();
  ASSERT_EQ(report.locks.size(), 1u);
  EXPECT_EQ(report.locks[0].name, "lock of ProcSleep, taken in LockAcquireExtended");
  EXPECT_EQ(report.locks[0].threads, 2u);
}

TEST(Locks, WhoLetItGoIsNamed) {
  FakeRun run;
  auto process = run.add_process(1, "/opt/server");
  auto waiter = run.add_thread(process, 2, "waiter"), holder = run.add_thread(process, 3, "holder");
  auto& wait = run.add_wait(waiter, run.stack(kTakeLock), 0, 500 * kNsPerMs);
  wait.waker = holder;
  Report report = analyse(run, {}).value();
  ASSERT_EQ(report.locks.size(), 1u);
  ASSERT_EQ(report.locks[0].holders.size(), 1u);
  EXPECT_EQ(report.locks[0].holders[0].thread, "holder");
  EXPECT_EQ(report.locks[0].address, 0u);
}

TEST(Locks, TheHeapsOwnLockIsTheAllocators) {
  FakeServer server(8, 4);
  auto arena = below_loop({"handle", "libc.so.6:free", "libc.so.6:_int_free",
                           "libc.so.6:__lll_lock_wait_private", "k:futex_wait_queue"});
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 1), waits(arena, 6, 0x1000), waits(kTakeWork, 1)});
  }
  Report report = server.report();
  ASSERT_FALSE(report.locks.empty());
  EXPECT_TRUE(report.locks[0].allocator);
  EXPECT_EQ(report.verdict.kind, VerdictKind::allocator);
}

TEST(Locks, AConvoyIsHandedOnFasterThanItIsWaitedFor) {
  FakeServer server(2, 4);
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 0.02), waits(kTakeLock, 0.1 + 0.001 * i, 0x1000)});
  }
  Report report = server.report();
  ASSERT_FALSE(report.locks.empty());
  EXPECT_EQ(report.locks[0].shape, LockShape::convoy);
}

// Handlers wait on a condition for a thread that itself waits for a socket: the socket is the
// cause.
TEST(Handoffs, AWaitIsFollowedToWhatItsSignallerWaitsFor) {
  FakeServer server(8, 4);
  auto future = below_loop(
      {"handle", "wait_for_commit", "libc.so.6:pthread_cond_wait", "k:futex_wait_queue"});
  auto reader =
      server.thread("acks", "acks",
                    {runs({"start_thread", "take_acks", "apply"}, 0.5),
                     waits({"start_thread", "take_acks", "libc.so.6:recv", "k:sk_wait_data"}, 9)});
  for (int i = 0; i < 4; ++i) {
    auto id = server.run().add_thread(server.process(), 500 + i, "client-" + std::to_string(i),
                                      "client-*");
    auto work = server.run().stack(kCompute), wait = server.run().stack(future);
    for (int k = 0; k < 80; ++k) {
      TimeNs at = k * 100 * kNsPerMs;
      server.run().add_sample(id, work, at, 10 * kNsPerMs);
      auto& one = server.run().add_wait(id, wait, at + 10 * kNsPerMs, 60 * kNsPerMs,
                                        {model::WaitFlag::runqueue_known});
      one.waker = reader;
      server.run().add_wait(id, server.run().stack(kTakeWork), at + 70 * kNsPerMs, 30 * kNsPerMs,
                            {model::WaitFlag::runqueue_known});
    }
  }
  Report report = server.report();
  EXPECT_GT(report.vitals.handoff_receive.value_or(0), 0.5);
  EXPECT_EQ(report.verdict.kind, VerdictKind::downstream);
}

}  // namespace
}  // namespace assay::analysis
