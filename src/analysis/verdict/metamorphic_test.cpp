// What must not change a verdict: parked threads, a longer window, other names, an unrelated busy
// process, another frequency.
#include <gtest/gtest.h>

#include "analysis/testing/fake_server.h"

namespace assay::analysis {
namespace {

struct Shape {
  VerdictKind kind;
  std::vector<Step> cycle;
  int threads;
  int cpus;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> kShapes{
      {VerdictKind::cpu, {runs(kCompute, 9), waits(kTakeWork, 0.5)}, 2, 2},
      {VerdictKind::allocator, {runs(kCompute, 6), runs(kMalloc, 3), waits(kTakeWork, 0.5)}, 2, 2},
      {VerdictKind::network_stack,
       {runs(kCompute, 4), runs(kSend, 5), waits(kTakeWork, 0.5)},
       2,
       2},
      {VerdictKind::lock,
       {runs(kCompute, 1), waits(kTakeLock, 6, 0x1000), waits(kTakeWork, 1)},
       4,
       4},
      {VerdictKind::disk, {runs(kCompute, 1), waits(kWriteDisk, 6), waits(kTakeWork, 1)}, 4, 4},
      {VerdictKind::network,
       {runs(kCompute, 1), waits(kSendBlocked, 3), waits(kTakeWork, 2)},
       4,
       4},
      {VerdictKind::downstream,
       {runs(kCompute, 1), waits(kAskBackend, 6), waits(kTakeWork, 1)},
       4,
       4},
      {VerdictKind::timer, {runs(kCompute, 1), waits(kSleep, 2), waits(kTakeWork, 2)}, 4, 4},
      {VerdictKind::serial_stage, {runs(kCompute, 9.8), waits(kTakeWork, 0.2)}, 1, 4},
      {VerdictKind::underloaded, {runs(kCompute, 1), waits(kTakeWork, 9)}, 4, 4},
  };
  return kShapes;
}

FakeServer make(const Shape& shape, double seconds = 8, double hz = 100,
                const std::string& name = "worker") {
  FakeServer server(seconds, shape.cpus, hz);
  for (int i = 0; i < shape.threads; ++i) {
    server.thread(name + "-" + std::to_string(i), name + "-*", shape.cycle);
  }
  return server;
}

TEST(Metamorphic, TheShapesAreWhatTheySay) {
  for (const Shape& shape : shapes()) EXPECT_EQ(make(shape).kind(), shape.kind);
}

TEST(Metamorphic, ParkedThreadsChangeNothing) {
  for (const Shape& shape : shapes()) {
    FakeServer server = make(shape);
    for (int i = 0; i < 200; ++i) {
      server.thread(
          "parked-" + std::to_string(i), "parked-*",
          {waits({"start_thread", "Pool::run", "libc.so.6:pthread_cond_wait", "k:futex_wait_queue"},
                 8000)});
      server.thread(
          "tick-" + std::to_string(i), "tick-*",
          {waits({"start_thread", "tick", "libc.so.6:clock_nanosleep", "k:hrtimer_nanosleep"},
                 1000)});
    }
    EXPECT_EQ(server.kind(), shape.kind);
  }
}

TEST(Metamorphic, ADoubledWindowChangesNothing) {
  for (const Shape& shape : shapes()) EXPECT_EQ(make(shape, 16).kind(), shape.kind);
}

TEST(Metamorphic, OtherThreadNamesChangeNothing) {
  for (const Shape& shape : shapes()) {
    EXPECT_EQ(make(shape, 8, 100, "grpcpp_sync_ser").kind(), shape.kind);
    // Even when every thread has a name of its own.
    FakeServer server(8, shape.cpus);
    for (int i = 0; i < shape.threads; ++i) {
      server.thread("t" + std::string(static_cast<size_t>(i + 1), 'x'), "", shape.cycle);
    }
    EXPECT_EQ(server.kind(), shape.kind);
  }
}

TEST(Metamorphic, AnUnrelatedBusyProcessChangesNothing) {
  for (const Shape& shape : shapes()) {
    FakeServer server = make(shape);
    // It keeps one CPU busy; the host counts it, the run does not hold it.
    double target = 0;
    for (const Step& step : shape.cycle) target += step.waits ? 0 : step.ms;
    double cycle = 0;
    for (const Step& step : shape.cycle) cycle += step.ms;
    double used = shape.threads * target / cycle;
    server.host_busy(std::min(0.89, (used + 1) / shape.cpus), shape.cpus);
    EXPECT_EQ(server.kind(), shape.kind);
  }
}

TEST(Metamorphic, AnotherFrequencyChangesNothing) {
  for (const Shape& shape : shapes()) {
    for (double hz : {49.0, 199.0, 997.0}) EXPECT_EQ(make(shape, 16, hz).kind(), shape.kind) << hz;
  }
}

TEST(Metamorphic, TheSameRunGivesTheSameFindings) {
  for (const Shape& shape : shapes()) {
    Report a = make(shape).report(), b = make(shape).report();
    ASSERT_EQ(a.findings.size(), b.findings.size());
    for (size_t i = 0; i < a.findings.size(); ++i)
      EXPECT_EQ(a.findings[i].title, b.findings[i].title);
    EXPECT_EQ(a.verdict.sentence, b.verdict.sentence);
  }
}

}  // namespace
}  // namespace assay::analysis
