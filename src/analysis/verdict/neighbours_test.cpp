// Verdicts on a host that others use as well: who they are decides what is said.
#include "analysis/verdict/neighbours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/fake_server.h"

namespace assay::analysis {
namespace {

using model::Relation;
using testing::HasSubstr;
using testing::Not;

void beside(FakeServer& server, const std::string& name, Relation relation, double cpus) {
  model::OtherUsers others = model::others_in(server.run().contents().facts);
  if (!others.cpus) others.cpus.emplace();
  (*others.cpus)[static_cast<size_t>(relation)] += cpus;
  others.largest.push_back({name, 40, 1, "", cpus, 0, relation});
  auto& facts = server.run().edit().facts;
  std::erase_if(facts, [](const model::Fact& fact) { return fact.scope.starts_with("other"); });
  for (const model::Fact& fact : model::to_facts(others)) facts.push_back(fact);
}

// Half of two CPUs; its threads queue as long as they run.
FakeServer half_of_the_machine() {
  FakeServer server;
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 2.5), queues(2.5), waits(kTakeWork, 5)});
  }
  server.host_busy(0.99);
  return server;
}

TEST(Neighbours, AStrangerThatFillsHalfOfTheMachineIsNamed) {
  FakeServer server = half_of_the_machine();
  beside(server, "stress", Relation::stranger, 0.95);
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::scheduler);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("stress (stranger) 0.95"));
  EXPECT_DOUBLE_EQ(report.vitals.stranger_cpus.value(), 0.95);
  for (const Claim& claim : report.verdict.secondary) {
    EXPECT_NE(claim.kind, VerdictKind::cpu) << claim.sentence;
  }
}

// The same numbers, but the other one is what drives the load.
TEST(Neighbours, TheLoadGeneratorIsNoNeighbour) {
  FakeServer server = half_of_the_machine();
  beside(server, "wrk", Relation::load_generator, 0.95);
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::cpu);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("the rest with wrk (load generator) 0.95"));
  EXPECT_DOUBLE_EQ(report.vitals.generator_cpus.value(), 0.95);
}

TEST(Neighbours, AHelperThatFillsHalfOfTheMachineIsNamed) {
  FakeServer server = half_of_the_machine();
  beside(server, "helper", Relation::connected, 0.95);
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::scheduler);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("helper (connected to the target) 0.95"));
}

// A generator that measured itself is believed more than what was seen of processes.
TEST(Neighbours, AMeasuredGeneratorIsNotReplaced) {
  FakeServer server = half_of_the_machine();
  beside(server, "wrk", Relation::load_generator, 0.2);
  server.load("mode", "closed");
  server.grows(model::SeriesScope::load, "requests", 1000);
  server.grows(model::SeriesScope::load, "generator_cpu", 0.7e9);
  EXPECT_NEAR(server.report().vitals.generator_cpus.value(), 0.7, 0.01);
}

TEST(Neighbours, RunsThatDoNotKnowThemSaySo) {
  Report report = half_of_the_machine().report();
  EXPECT_FALSE(report.vitals.stranger_cpus);
  EXPECT_FALSE(report.vitals.connected_cpus);
  EXPECT_FALSE(report.vitals.generator_cpus);
}

// What is free is what neither the target nor others use.
TEST(Neighbours, OnAFullMachineNoCpuIsFree) {
  auto calm = [](double host_busy) {
    FakeServer server;
    server.thread("w", "w", {runs(kCompute, 0.5), waits(kTakeWork, 9.5)});
    server.host_busy(host_busy);
    beside(server, "stress", Relation::stranger, 2 * host_busy - 0.05);
    return server.report().verdict;
  };
  Verdict full = calm(0.999), half = calm(0.5);
  EXPECT_EQ(full.kind, VerdictKind::underloaded);
  EXPECT_THAT(full.sentence, Not(HasSubstr("are free")));
  EXPECT_THAT(full.sentence, HasSubstr("stress (stranger) 1.95"));
  EXPECT_EQ(half.kind, VerdictKind::underloaded);
  EXPECT_THAT(half.sentence, HasSubstr("50.0 % of its CPUs are free"));
}

TEST(Neighbours, WhoUsesNothingIsNotListed) {
  FakeServer server = half_of_the_machine();
  beside(server, "idler", Relation::stranger, 0.01);
  beside(server, "wrk", Relation::load_generator, 0.9);
  Report report = server.report();
  ASSERT_EQ(report.others.largest.size(), 1u);
  EXPECT_EQ(report.others.largest[0].name, "wrk");
  EXPECT_NEAR(report.vitals.stranger_cpus.value(), 0.01, 1e-9) << "it still counts";
}

}  // namespace
}  // namespace assay::analysis
