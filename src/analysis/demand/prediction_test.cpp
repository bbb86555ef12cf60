// Predictions for servers whose answer can be worked out by hand.
#include "analysis/demand/prediction.h"

#include <gtest/gtest.h>

namespace assay::analysis {
namespace {

PoolDemand pool(double threads, double running_s) {
  PoolDemand p;
  p.pool = "worker";
  p.threads = threads;
  p.held_share = 1;
  p.running_s = running_s;
  return p;
}

Demands server(double in_flight, double cpus, PoolDemand worker, double units_per_s) {
  Demands d;
  d.units_per_s = units_per_s;
  d.in_flight = in_flight;
  d.cpus = cpus;
  d.own_cpu_s = worker.running_s;
  d.busy_s = worker.own_s();
  d.pools.push_back(std::move(worker));
  return d;
}

std::optional<double> predict(const Demands& demands, const Removal& removal) {
  return ServerModel(demands).predict(removal);
}

double& blocked(Demands& d, BlockKind kind) {
  return d.pools[0].blocked_s[static_cast<size_t>(kind)];
}

TEST(Prediction, HalfOfTheCpuTimeOfAFullMachineIsTwiceAsMuch) {
  Removal half;
  half.cpu_share = 0.5;
  EXPECT_NEAR(predict(server(32, 2, pool(32, 0.001), 1900), half).value(), 1, 0.1);
}

// Eight threads sleep 9 ms and run 1 ms: 800 a second. Without the sleep two CPUs allow 2,000.
TEST(Prediction, WithoutASleepTheCpusAreTheLimit) {
  Demands d = server(8, 2, pool(8, 0.001), 780);
  blocked(d, BlockKind::timer) = 0.009;
  Removal all{0, {}, BlockKind::timer, 1, {}};
  EXPECT_NEAR(predict(d, all).value(), 1.5, 0.25);
  Removal half{0, {}, BlockKind::timer, 0.5, {}};
  EXPECT_NEAR(predict(d, half).value(), 0.7, 0.15);
}

// All of 0.3 ms of waiting is done under one lock: 3,300 a second; without it eight threads do it
// side by side.
TEST(Prediction, WithoutALockItsHoldersWorkSideBySide) {
  Demands d = server(8, 2, pool(8, 0.00005), 3100);
  blocked(d, BlockKind::other) = 0.0003;
  blocked(d, BlockKind::lock) = 0.002;
  d.locks.push_back({"mutex", 0.8, 0.0003, 0.002, 7});
  Removal lock{0, {}, BlockKind::lock, 1, 0};
  EXPECT_NEAR(predict(d, lock).value(), 6, 1.5);
  Removal another{0, {}, BlockKind::lock, 1, 5};
  EXPECT_NEAR(predict(d, another).value(), 0, 1e-6) << "it is not about this lock";
}

// One thread does 1 ms for each unit; of two CPUs one is free.
TEST(Prediction, AStageIsHelpedByItsOwnCpuTimeOnly) {
  Demands d = server(64, 2, pool(8, 0.0001), 950);
  d.pools.push_back(pool(1, 0.001));
  d.own_cpu_s = 0.0011;
  Removal of_stage{0.4, 1, {}, 0, {}};
  Removal of_others{0.05, 0, {}, 0, {}};
  EXPECT_NEAR(predict(d, of_stage).value(), 0.7, 0.2);
  EXPECT_LT(predict(d, of_others).value(), 0.05);
}

// The clients pause: a shorter answer helps only as much as the answer is of a client's round.
TEST(Prediction, WhatTheClientsTakeStays) {
  Demands d = server(4, 2, pool(16, 0.0001), 100);
  blocked(d, BlockKind::timer) = 0.01;
  Removal all{0, {}, BlockKind::timer, 1, {}};
  EXPECT_NEAR(predict(d, all).value(), 0.33, 0.05);
}

TEST(Prediction, AModelThatIsFarTooSlowSaysNothing) {
  Demands d = server(4, 2, pool(4, 0.01), 5000);
  Removal half;
  half.cpu_share = 0.5;
  EXPECT_FALSE(predict(d, half));
  EXPECT_FALSE(predict(Demands(), half));
}

}  // namespace
}  // namespace assay::analysis
