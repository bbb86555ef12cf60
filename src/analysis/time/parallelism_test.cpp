#include "analysis/time/parallelism.h"

#include <gtest/gtest.h>

#include "analysis/testing/fake_server.h"

namespace assay::analysis {
namespace {

// Threads of one server: each takes work, then runs for its turn and waits the rest, at `wait`.
FakeServer turns(int threads, double run_ms, double period_ms, const std::vector<std::string>& wait,
                 bool together) {
  FakeServer server(8, 4);
  for (int i = 0; i < threads; ++i) {
    double before = together ? 0.001 : run_ms * i + 0.001;
    server.thread("w-" + std::to_string(i), "w-*",
                  {waits(kTakeWork, 0.1), waits(wait, before), runs(kCompute, run_ms),
                   waits(wait, period_ms - run_ms - before - 0.1)});
  }
  return server;
}

const std::vector<std::string> kTurn = below_loop(
    {"handle", "take_turn", "libc.so.6:pthread_cond_wait", "k:do_futex", "k:futex_wait_queue"});

TEST(Parallelism, AddsUpToTheWindow) {
  Report report = turns(4, 10, 40.2, kTurn, false).report();
  double sum = 0;
  for (double share : report.parallelism.active) sum += share;
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_EQ(report.parallelism.threads, 4u);
  EXPECT_NEAR(report.parallelism.mean_active, 1, 0.01);
}

TEST(Parallelism, ThreadsThatTakeTurnsAreOneAtATime) {
  Report report = turns(4, 10, 40.2, kTurn, false).report();
  ASSERT_GE(report.parallelism.active.size(), 2u);
  EXPECT_NEAR(report.parallelism.active[1], 1, 0.02);
  EXPECT_NEAR(report.parallelism.busiest_thread, 0.25, 0.01);
  EXPECT_EQ(report.verdict.kind, VerdictKind::serial_stage) << report.verdict.sentence;
}

TEST(Parallelism, ThreadsThatRunTogetherAreNot) {
  Report report = turns(4, 10, 40, kTurn, true).report();
  ASSERT_GE(report.parallelism.active.size(), 5u);
  EXPECT_NEAR(report.parallelism.active[4], 0.25, 0.02);
  EXPECT_NEAR(report.parallelism.active[0], 0.75, 0.02);
  EXPECT_NE(report.verdict.kind, VerdictKind::serial_stage);
}

// The same turns with nothing to do in between: nobody is kept waiting.
TEST(Parallelism, ThreadsWithoutWorkAreNotOneAtATime) {
  Report report = turns(4, 10, 40.2, kTakeWork, false).report();
  EXPECT_NEAR(Parallelism::at_least(report.parallelism.at_work, 2), 0, 0.02);
  EXPECT_NE(report.verdict.kind, VerdictKind::serial_stage) << report.verdict.sentence;
}

TEST(Parallelism, LittleLoadIsNotOneAtATime) {
  Report report = turns(4, 10, 80, kTurn, false).report();
  EXPECT_NEAR(Parallelism::at_least(report.parallelism.active, 1), 0.5, 0.02);
  EXPECT_NE(report.verdict.kind, VerdictKind::serial_stage) << report.verdict.sentence;
}

TEST(Parallelism, OneThreadThatDoesAllIsAStageNotTurns) {
  FakeServer server(8, 4);
  server.thread("main", "main", {runs(kCompute, 10), waits(kTakeWork, 0.1)});
  server.thread("other", "other", {waits(kTurn, 1000)});
  Report report = server.report();
  EXPECT_NEAR(report.parallelism.busiest_thread, 1, 0.01);
  EXPECT_EQ(report.verdict.sentence.find("take turns"), std::string::npos);
}

// What a thread waits for a CPU it is ready: on a full machine turns look the same.
TEST(Parallelism, AReadyThreadIsActive) {
  FakeServer server(8, 2);
  server.thread("w", "w", {runs(kCompute, 5), queues(5)});
  Report report = server.report();
  ASSERT_EQ(report.parallelism.active.size(), 2u);
  EXPECT_NEAR(report.parallelism.active[1], 1, 0.01);
}

}  // namespace
}  // namespace assay::analysis
