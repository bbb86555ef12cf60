// Mistakes that people make when they read profiles by hand; each must not be made here.
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/fake_server.h"

namespace assay::analysis {
namespace {

using testing::HasSubstr;

// Nested percentages do not add: a subsystem table of 170 %.
TEST(Seeds, ABreakdownAddsUpToTheWhole) {
  FakeServer server;
  auto rpc = std::vector<std::string>{"main",
                                      "AsyncServer::HandleRpcs",
                                      "CallData::Proceed",
                                      "grpc::ServerAsyncResponseWriter<R>::Finish(R)",
                                      "grpc_call_start_batch",
                                      "grpc_core::ExecCtx::Flush()",
                                      "grpc_core::FilterStackCall::DestroyCall(x)",
                                      "libc.so.6:free"};
  for (size_t depth = 2; depth <= rpc.size(); ++depth) {
    server.thread(
        "t" + std::to_string(depth), "t-*",
        {runs(std::vector<std::string>(rpc.begin(), rpc.begin() + static_cast<long>(depth)), 3),
         waits(kTakeWork, 7)});
  }
  std::map<std::string, int64_t> sum;
  std::map<std::string, double> shares;
  Report report = server.report();
  for (const CategoryShare& row : report.categories) {
    sum[row.category.breakdown] += row.time_ns;
    shares[row.category.breakdown] += row.share.share;
    EXPECT_GE(row.inclusive_share, row.share.share - 1e-9);
    EXPECT_LE(row.inclusive_share, 1 + 1e-9);
  }
  EXPECT_GE(sum.size(), 4u);
  for (const auto& [breakdown, ns] : sum) {
    EXPECT_EQ(ns, report.on_cpu.time_ns) << breakdown;
    EXPECT_NEAR(shares[breakdown], 1, 1e-9) << breakdown;
  }
}

// CPU time in system calls is work, not waiting: "I/O-bound" does not follow.
TEST(Seeds, CpuInSystemCallsIsNotWaiting) {
  FakeServer server;
  server.thread("w", "w", {runs(kCompute, 3), runs(kSend, 2), waits(kTakeWork, 5)});
  Report report = server.report();
  for (const Claim& claim : report.verdict.secondary) EXPECT_NE(claim.kind, VerdictKind::network);
  EXPECT_NE(report.verdict.kind, VerdictKind::network);
  EXPECT_NE(report.verdict.kind, VerdictKind::downstream);
  EXPECT_EQ(report.thread_time.of(BlockKind::network_send), 0);
}

// Counts are not time: a thousand short waits are less than one long one.
TEST(Seeds, WaitsAreRankedByTimeNotByCount) {
  FakeServer server;
  server.thread("w", "w",
                {runs(kCompute, 1), waits(kTakeLock, 0.01, 0x1000), runs(kCompute, 1),
                 waits(kTakeLock, 0.01, 0x1000), waits(kWriteDisk, 6)});
  Report report = server.report();
  EXPECT_EQ(report.off_cpu.paths[0].kind, BlockKind::disk);
  EXPECT_EQ(report.verdict.kind, VerdictKind::disk);
  EXPECT_LT(report.off_cpu.paths[0].count, report.off_cpu.paths[1].count);
}

// Preemption is not blocking.
TEST(Seeds, PreemptionsAreNotWaitsForLocks) {
  FakeServer server;
  for (int i = 0; i < 4; ++i)
    server.thread("w" + std::to_string(i), "w-*", {runs(kCompute, 5), queues(5)});
  Report report = server.report();
  EXPECT_TRUE(report.locks.empty());
  EXPECT_EQ(report.thread_time.blocked_total_ns(), 0);
  EXPECT_EQ(report.verdict.kind, VerdictKind::cpu);
}

// A symbol in both the on-CPU and the off-CPU view is every caller of anything, not a contended
// lock.
TEST(Seeds, ALockInBothViewsIsNotContendedByThat) {
  FakeServer server;
  auto unlock = below_loop({"handle", "Table::put", "libc.so.6:pthread_mutex_unlock"});
  for (int i = 0; i < 2; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 8), runs(unlock, 1.2), waits(kTakeLock, 0.02, 0x1000),
                   waits(kTakeWork, 0.5)});
  }
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::cpu);
  for (const Finding& finding : report.findings) {
    EXPECT_NE(finding.id, "contended-lock");
    EXPECT_NE(finding.id, "lock-convoy");
  }
  ASSERT_EQ(report.locks.size(), 1u);
  EXPECT_EQ(report.locks[0].shape, LockShape::brief);
}

// A condition variable that a pool sleeps on is no lock, though a mutex is passed to it.
TEST(Seeds, AConditionIsNotALock) {
  FakeServer server;
  server.thread("w", "w", {runs(kCompute, 5), waits(kTakeWork, 5, 0x1000)});
  EXPECT_TRUE(server.report().locks.empty());
}

// 110 samples carry no claim of 0.9 %.
TEST(Seeds, FewSamplesCarryNoSmallClaims) {
  FakeServer server(8, 8);
  auto atomic = below_loop({"handle", "count|std::__atomic_base<long>::fetch_add"});
  server.thread("w", "w", {runs(kCompute, 1.32), runs(atomic, 0.05), waits(kTakeWork, 8.63)});
  Report report = server.report();
  ASSERT_LT(report.on_cpu.samples, 120u);
  for (const Finding& finding : report.findings) EXPECT_NE(finding.id, "shared-counter");
  for (const HotFunction& f : report.on_cpu.functions) {
    if (f.self_samples != 1) continue;
    EXPECT_GT(f.self.high, 0.03);
  }
}

// 3.66 % of one core is idle, neither "network-bound" nor "well optimised".
TEST(Seeds, ThreePercentOfACoreIsIdle) {
  FakeServer server(30, 4);
  server.thread("tokio", "tokio", {runs(kSend, 0.366), waits(kTakeWork, 9.634)});
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::underloaded);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("free"));
  for (const Finding& finding : report.findings) {
    EXPECT_TRUE(!finding.gain.upper_bound || *finding.gain.upper_bound == 0) << finding.id;
  }
}

// Half a core used with four requests in flight: more requests may help, but by how much is not
// known, and no gain of 200 % is promised.
TEST(Seeds, LinearScalingIsNotAssumed) {
  FakeServer server(8, 4);
  server.thread("r", "r", {runs(kCompute, 2), runs(kSend, 3), waits(kTakeWork, 5)});
  server.load("mode", "closed");
  server.load("connections", "4");
  server.load("p50_ns", "615000");
  server.grows(model::SeriesScope::load, "requests", 6500);
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::concurrency_limited);
  EXPECT_THAT(report.verdict.next_command, HasSubstr("sweep"));
  for (const Finding& finding : report.findings) {
    // At most what the CPU per request (77 µs) is of the latency (615 µs).
    if (!finding.gain.upper_bound) continue;
    EXPECT_LT(*finding.gain.upper_bound, 0.15) << finding.id;
  }
}

// Debug builds are called out before anything is concluded from them.
TEST(Seeds, DebugBuildsAreCalledOut) {
  FakeServer server;
  auto o0 =
      below_loop({"handle", "std::vector<int, std::allocator<int> >::operator[](unsigned long)"});
  for (int i = 0; i < 2; ++i)
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 7), runs(o0, 2), waits(kTakeWork, 0.5)});
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::withheld);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("without optimisation"));
}

// The root frame of a pool's threads is not "pool overhead": it owns nothing that lies below it.
TEST(Seeds, ARootFrameOwnsNothingBelowIt) {
  FakeServer server;
  server.thread(
      "e", "e",
      {runs({"libc.so.6:clone3",
             "grpc_event_engine::experimental::WorkStealingThreadPool::ThreadState::ThreadBody()",
             "App::handle", "compute"},
            9),
       waits(kTakeWork, 1)});
  for (const CategoryShare& row : server.report().categories) {
    if (row.category.id == "grpc-event-engine" && row.category.breakdown == kSubsystem) {
      ADD_FAILURE() << "owns " << row.share.share;
    }
    if (row.category.id != "application") continue;
    EXPECT_NEAR(row.share.share, 1, 1e-9);
  }
}

}  // namespace
}  // namespace assay::analysis
