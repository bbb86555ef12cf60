// Demands of servers whose cycles are known.
#include "analysis/demand/demands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/fake_server.h"

namespace assay::analysis {
namespace {

const Resource* find(const Demands& d, ResourceKind kind, const std::string& name = "") {
  for (const Resource& r : d.resources) {
    if (r.kind == kind && (name.empty() || r.name == name)) return &r;
  }
  return nullptr;
}

// Four threads: of each 10 ms, 2 ms run, 3 ms for the disk, 4 ms asleep, 1 ms idle: 100 cycles a
// second each.
FakeServer four_workers() {
  FakeServer server;
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 2), waits(kWriteDisk, 3), waits(kSleep, 4), waits(kTakeWork, 1)});
  }
  return server;
}

TEST(Demands, ArePerWakeUpWithoutLoad) {
  Demands d = four_workers().report().demands;
  EXPECT_EQ(d.unit, WorkUnit::wakeup);
  EXPECT_NEAR(d.units_per_s, 400, 4);
  EXPECT_NEAR(d.own_cpu_s, 0.002, 0.0002);
  ASSERT_TRUE(find(d, ResourceKind::disk));
  EXPECT_NEAR(find(d, ResourceKind::disk)->demand_s, 0.003, 0.0001);
  EXPECT_NEAR(find(d, ResourceKind::disk)->waiting, 1.2, 0.05);
  EXPECT_NEAR(find(d, ResourceKind::timer)->demand_s, 0.004, 0.0001);
  const Resource* threads = find(d, ResourceKind::threads, "w-*");
  ASSERT_TRUE(threads);
  EXPECT_NEAR(threads->servers, 4, 1e-6);
  EXPECT_NEAR(threads->busy_share, 0.9, 0.02);
}

TEST(Demands, ArePerRequestWithLoad) {
  FakeServer server = four_workers();
  server.load("throughput_per_s", "200");
  server.load("mode", "closed");
  server.load("connections", "16");
  Demands d = server.report().demands;
  EXPECT_EQ(d.unit, WorkUnit::request);
  EXPECT_NEAR(find(d, ResourceKind::disk)->demand_s, 0.006, 0.0002);
  EXPECT_TRUE(d.in_flight_known);
  EXPECT_NEAR(d.in_flight, 4, 0.01) << "all threads are taken: no more come in";
}

// The generator's CPU time is needed for each request as well.
TEST(Demands, TheCpusServeWhoeverWorksForARequest) {
  FakeServer server = busy_server();
  server.host_busy(1.0);
  Demands d = server.report().demands;
  const Resource* cpus = find(d, ResourceKind::cpus);
  ASSERT_TRUE(cpus);
  EXPECT_NEAR(cpus->busy_share, 1, 0.01);
  EXPECT_TRUE(cpus->limits);
  EXPECT_GT(cpus->waiting, 1);
  EXPECT_GT(d.other_cpu_s, 0);
}

TEST(Demands, ALockIsHeldWhileSomebodyWaits) {
  FakeServer server;
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 1), waits(kTakeLock, 8, 0x1000), waits(kTakeWork, 1)});
  }
  Demands d = server.report().demands;
  const Resource* lock = find(d, ResourceKind::lock);
  ASSERT_TRUE(lock);
  EXPECT_GT(lock->busy_share, 0.75);
  EXPECT_NEAR(find(d, ResourceKind::threads)->busy_share, 0.1, 0.02)
      << "waiting for a lock is no work of the thread's own";
}

// One round in eight seconds is no stage of 100 units a second, however long it sleeps.
TEST(Demands, AThreadThatSeldomComesIsApart) {
  FakeServer server = four_workers();
  server.thread("flusher", "flusher", {runs(kCompute, 800), waits(kSleep, 7200)});
  Demands d = server.report().demands;
  EXPECT_FALSE(find(d, ResourceKind::threads, "flusher"));
  EXPECT_NEAR(find(d, ResourceKind::timer)->demand_s, 0.004, 0.0001) << "its sleep is its own";
}

TEST(Demands, AreUnknownWhereNothingRan) {
  EXPECT_FALSE(FakeServer().report().demands.known());
}

}  // namespace
}  // namespace assay::analysis
