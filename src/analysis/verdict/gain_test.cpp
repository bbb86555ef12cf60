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
  return gains_of(vitals, verdict, {f}).at(0);
}

TEST(Gain, OfCpuTimeFollowsAmdahlWhereTheCpuIsTheLimit) {
  Diagnosis half = finding(ShareOf::cpu_time, 0.5);
  EXPECT_NEAR(gain({}, VerdictKind::cpu, half).upper_bound.value(), 1, 1e-9);
  EXPECT_EQ(gain({}, VerdictKind::cpu, finding(ShareOf::busy_time, 0.5)).upper_bound, 0.0);
}

TEST(Gain, OfAWaitEndsWhereTheCpusAreTheLimit) {
  Vitals vitals;
  vitals.utilisation = 0.8;
  Gain lock = gain(vitals, VerdictKind::lock, finding(ShareOf::busy_time, 0.5));
  EXPECT_NEAR(lock.upper_bound.value(), 0.25, 1e-9);
  EXPECT_THAT(lock.text, HasSubstr("then the CPUs are the limit"));
  EXPECT_EQ(gain(vitals, VerdictKind::lock, finding(ShareOf::cpu_time, 0.5)).upper_bound, 0.0);
}

// What a finding explains is worth something under that verdict, and under no other.
TEST(Gain, OfTheCauseOfAVerdict) {
  Vitals vitals;
  vitals.runqueue_of_ready = 0.5;
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
  EXPECT_EQ(gain({}, VerdictKind::underloaded, half).upper_bound, 0.0);
  half.cause = Cause::memory;
  EXPECT_FALSE(gain({}, VerdictKind::cpu, half).upper_bound);
}

TEST(Gain, RanksWhatInvalidatesTheRunThenByGain) {
  std::vector<Diagnosis> findings(3, finding(ShareOf::cpu_time, 0.1));
  findings[0].id = "small";
  findings[1].id = "large";
  findings[2].id = "debug";
  findings[2].withholds = true;
  std::vector<Finding> all = ranked(findings, {{0.1, "a"}, {0.5, "b"}, {std::nullopt, "c"}});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].id, "debug");
  EXPECT_EQ(all[1].id, "large");
  EXPECT_EQ(all[1].gain.text, "b");
  EXPECT_EQ(all[2].id, "small");
}

}  // namespace
}  // namespace assay::analysis
