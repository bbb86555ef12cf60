#include "analysis/verdict/gain.h"

#include <gmock/gmock.h>

namespace assay::analysis {
namespace {

using ::testing::HasSubstr;

Diagnosis finding(ShareOf of, double share) {
  Diagnosis f;
  f.id = "x";
  f.of = of;
  f.share = {share, share, share};
  return f;
}

Gain gain(const Vitals& vitals, VerdictKind verdict, const Diagnosis& f) {
  return gains_of({Demands(), vitals, verdict}, {f}).at(0);
}

TEST(Gain, OfCpuTimeIsWhatTheCpusAllowWithoutIt) {
  Diagnosis half = finding(ShareOf::cpu_time, 0.5);
  EXPECT_NEAR(gain({}, VerdictKind::cpu, half).upper_bound.value(), 1, 1e-9);
  Vitals vitals;
  vitals.utilisation = 0.8;
  EXPECT_NEAR(gain(vitals, VerdictKind::cpu, half).upper_bound.value(), 1.5, 1e-9);
  half.share.high = 0.6;  // the bound holds for the whole interval
  EXPECT_NEAR(gain(vitals, VerdictKind::cpu, half).upper_bound.value(), 2.125, 1e-9);
}

// The share of time that a wait takes bounds nothing: a lock that is held 1 % of the time can stop
// all threads.
TEST(Gain, OfAWaitIsWhatTheCpusAllow) {
  Vitals vitals;
  vitals.utilisation = 0.4;
  Gain lock = gain(vitals, VerdictKind::lock, finding(ShareOf::busy_time, 0.1));
  EXPECT_NEAR(lock.upper_bound.value(), 1.5, 1e-9);
  EXPECT_THAT(lock.text, HasSubstr("then the CPUs are the limit"));
  vitals.kernel_cpu = 0.5;  // which may belong to the wait
  lock = gain(vitals, VerdictKind::lock, finding(ShareOf::busy_time, 0.1));
  EXPECT_NEAR(lock.upper_bound.value(), 4, 1e-9);
  EXPECT_FALSE(gain(vitals, VerdictKind::lock, finding(ShareOf::cpu_time, 0.5)).upper_bound)
      << "work under the lock makes the wait longer";
  vitals.utilisation = 0.02;
  lock = gain(vitals, VerdictKind::lock, finding(ShareOf::busy_time, 0.1));
  EXPECT_FALSE(lock.upper_bound);
  EXPECT_THAT(lock.text, HasSubstr("not bounded by this run"));
}

TEST(Gain, AtAStageEndsWhereTheNextOneIsTheLimit) {
  Vitals vitals;
  vitals.serial_on = 0.95;
  vitals.cpus_used = 0.95;
  vitals.utilisation = 0.1;
  Diagnosis half = finding(ShareOf::cpu_time, 0.5);
  EXPECT_NEAR(gain(vitals, VerdictKind::serial_stage, half).upper_bound.value(), 1 / 0.475 - 1,
              1e-9);
  vitals.serial_next = 0.8;
  Gain next = gain(vitals, VerdictKind::serial_stage, half);
  EXPECT_NEAR(next.upper_bound.value(), 0.25, 1e-9);
  EXPECT_THAT(next.text, HasSubstr("the next resource is the limit"));
}

// A queue multiplies what a shorter answer saves.
TEST(Gain, OfShorterAnswersCountsTheQueue) {
  Vitals vitals;
  vitals.latency_ms = 1;
  vitals.cpu_us_per_request = 200;
  vitals.utilisation = 0.5;
  Gain half = gain(vitals, VerdictKind::concurrency_limited, finding(ShareOf::cpu_time, 0.5));
  EXPECT_NEAR(half.upper_bound.value(), 0.25, 1e-9);
  EXPECT_NEAR(half.worth, 1 / 9.0, 1e-9);
}

// What a finding explains is worth something under that verdict, and under no other.
TEST(Gain, OfTheCauseOfAVerdict) {
  Vitals vitals;
  vitals.runqueue_of_ready = 0.5;
  vitals.host_cpus = 4;
  vitals.generator_cpus = 1;
  vitals.cpus_used = 1.5;
  Diagnosis neighbour = finding(ShareOf::nothing, 1);
  EXPECT_FALSE(gain(vitals, VerdictKind::scheduler, neighbour).upper_bound);
  neighbour.explains = VerdictKind::scheduler;
  EXPECT_NEAR(gain(vitals, VerdictKind::scheduler, neighbour).upper_bound.value(), 1, 1e-9);
  EXPECT_FALSE(gain(vitals, VerdictKind::cpu, neighbour).upper_bound);
}

TEST(Gain, IsNotBoundedWhereNoSingleThingIsTheLimit) {
  Diagnosis half = finding(ShareOf::cpu_time, 0.5);
  EXPECT_FALSE(gain({}, VerdictKind::mixed, half).upper_bound);
  EXPECT_FALSE(gain({}, VerdictKind::withheld, half).upper_bound);
  EXPECT_FALSE(gain({}, VerdictKind::underloaded, half).upper_bound)
      << "unknown clients may send the next request when they have an answer";
  Vitals open;
  open.open_loop = 1;
  EXPECT_EQ(gain(open, VerdictKind::underloaded, half).upper_bound, 0.0);
  half.cause = Cause::memory;
  EXPECT_FALSE(gain({}, VerdictKind::cpu, half).upper_bound);
}

TEST(Gain, RanksWhatInvalidatesTheRunThenByWorth) {
  std::vector<Diagnosis> findings(3, finding(ShareOf::cpu_time, 0.1));
  findings[0].id = "small";
  findings[1].id = "large";
  findings[2].id = "debug";
  findings[2].withholds = true;
  std::vector<Finding> all = ranked(findings, {{0.9, "a", {}, 0.1}, {0.5, "b", {}, 0.5}, {std::nullopt, "c", {}, 0}});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].id, "debug");
  EXPECT_EQ(all[1].id, "large");
  EXPECT_EQ(all[1].gain.text, "b");
  EXPECT_EQ(all[2].id, "small");
}

}  // namespace
}  // namespace assay::analysis
