// The rules about accelerators, and what they keep the other rules and the detectors from saying.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/rules/rule_set.h"
#include "analysis/testing/fake_server.h"
#include "analysis/verdict/verdict.h"

namespace assay::analysis {
namespace {

using model::SeriesScope;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> in_driver(std::vector<std::string> rest) {
  auto stack = below_loop({"handle", "infer_one", "libcudart.so.12:cudaStreamSynchronize",
                           "libcuda.so.1:cuStreamSynchronize", "libcuda.so.1:inside_a"});
  stack.insert(stack.end(), rest.begin(), rest.end());
  return stack;
}
const std::vector<std::string> kSpinForDevice = in_driver({"libcuda.so.1:inside_b"});
const std::vector<std::string> kReadClockForDevice =
    in_driver({"libc.so.6:clock_gettime", "[vdso]:__vdso_clock_gettime"});
const std::vector<std::string> kSleepForDevice =
    in_driver({"libc.so.6:poll", "k:do_sys_poll", "k:poll_schedule_timeout"});

void add_device(FakeServer& server, double busy, bool used = true) {
  model::Accelerator device{"nvidia0", "NVIDIA H200", 150'000'000'000, 700, used};
  for (const model::Fact& fact : model::to_facts(device)) server.run().edit().facts.push_back(fact);
  server.level(SeriesScope::host, model::kAcceleratorBusy, static_cast<int64_t>(busy * 1000),
               "nvidia0");
  server.level(SeriesScope::host, model::kAcceleratorPower, 693'000, "nvidia0");
}

void add_closed_loop(FakeServer& server) {
  server.load("mode", "closed");
  server.load("connections", "4");
  server.load("p50_ns", "1000000");
  server.grows(SeriesScope::load, "requests", 400);
}

// As on the H200: one thread in four CPUs launches, spins, answers.
FakeServer spinning_server(double busy) {
  FakeServer server(8, 4);
  server.thread("worker", "worker",
                {runs(kCompute, 0.4), runs(kSpinForDevice, 6), runs(kReadClockForDevice, 3),
                 waits(kTakeWork, 0.6)});
  add_closed_loop(server);
  add_device(server, busy);
  return server;
}

FakeServer sleeping_server() {
  FakeServer server(8, 4);
  for (int i = 0; i < 2; ++i)
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 1), waits(kSleepForDevice, 8), waits(kTakeWork, 1)});
  return server;
}

TEST(AcceleratorRule, AFullDeviceIsTheLimitAndTheWaiterIsNamed) {
  Report report = spinning_server(1).report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::accelerator);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("NVIDIA H200 is 100 % busy at 693 W"));
  EXPECT_THAT(report.verdict.sentence, HasSubstr("spinning in cudaStreamSynchronize"));
  EXPECT_THAT(report.verdict.sentence, HasSubstr("called by infer_one"));
  EXPECT_GE(report.verdict.confidence, 0.8);
  EXPECT_TRUE(report.verdict.secondary.empty()) << report.verdict.secondary[0].sentence;
}

TEST(AcceleratorRule, WhatSpinsForADeviceIsNoOtherCost) {
  Report report = spinning_server(1).report();
  EXPECT_NEAR(report.vitals.accelerator_cpu.value_or(0), 9.0 / 9.4, 0.02);
  EXPECT_EQ(report.vitals.spin_cpu, 0);
  for (const Finding& finding : report.findings)
    EXPECT_NE(finding.id, "clock-reads") << finding.title;
  // The same clock outside of a wait for a device is a cost.
  FakeServer other(8, 4);
  auto clock = below_loop({"handle", "libc.so.6:clock_gettime", "[vdso]:__vdso_clock_gettime"});
  other.thread("worker", "worker", {runs(kCompute, 6), runs(clock, 3), waits(kTakeWork, 1)});
  EXPECT_FALSE(other.report().findings.empty());
}

TEST(AcceleratorRule, BesideAFullDeviceNothingPromisesMuch) {
  FakeServer server(8, 4);
  auto clock = below_loop({"handle", "libc.so.6:clock_gettime", "[vdso]:__vdso_clock_gettime"});
  server.thread("worker", "worker",
                {runs(clock, 3), runs(kSpinForDevice, 6.5), waits(kTakeWork, 0.5)});
  add_closed_loop(server);
  add_device(server, 0.98);
  Report report = server.report();
  ASSERT_EQ(report.verdict.kind, VerdictKind::accelerator);
  auto clock_reads = std::ranges::find(report.findings, "clock-reads", &Finding::id);
  ASSERT_NE(clock_reads, report.findings.end()) << "outside of the wait it is a cost";
  EXPECT_NEAR(clock_reads->share.share, 3.0 / 9.5, 0.02);
  ASSERT_TRUE(clock_reads->gain.upper_bound);
  EXPECT_NEAR(*clock_reads->gain.upper_bound, 1 / 0.98 - 1, 0.001);
  EXPECT_FALSE(clock_reads->gain.predicted);
}

TEST(AcceleratorRule, TheDeviceIsTheResourceThatLimits) {
  Report report = spinning_server(0.97).report();
  ASSERT_FALSE(report.demands.resources.empty());
  const Resource& first = report.demands.resources[0];
  EXPECT_EQ(first.kind, ResourceKind::accelerator);
  EXPECT_EQ(first.name, "NVIDIA H200");
  EXPECT_TRUE(first.limits);
  EXPECT_NEAR(first.demand_s, 0.97 / 400, 1e-4);
  EXPECT_NEAR(first.waiting, 0.9, 0.05) << "one thread that spins nine tenths of the time";
  auto cpus = std::ranges::find(report.demands.resources, ResourceKind::cpus, &Resource::kind);
  ASSERT_NE(cpus, report.demands.resources.end());
  EXPECT_LT(cpus->busy_share, 0.1) << "spinning needs no CPU";
}

TEST(AcceleratorRule, ADeviceThatIsNotFullIsAwaited) {
  Report report = spinning_server(0.4).report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::accelerator);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("40.0 % busy"));
  EXPECT_LE(report.verdict.confidence, 0.75);
}

TEST(AcceleratorRule, AFullDeviceWithoutWaitsLeavesNoRoom) {
  FakeServer server(8, 4);
  server.thread("worker", "worker", {runs(kCompute, 3), waits(kTakeWork, 7)});
  add_closed_loop(server);
  ASSERT_EQ(server.kind(), VerdictKind::concurrency_limited);
  add_device(server, 0.97);
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::accelerator);
  EXPECT_THAT(report.verdict.sentence, Not(HasSubstr("free")));
  for (const Claim& claim : report.verdict.secondary)
    EXPECT_THAT(claim.sentence, Not(HasSubstr("free")));
}

TEST(AcceleratorRule, ADeviceOfOthersSaysNothing) {
  FakeServer server(8, 4);
  server.thread("worker", "worker", {runs(kCompute, 3), waits(kTakeWork, 7)});
  add_closed_loop(server);
  add_device(server, 1, false);
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::concurrency_limited);
  EXPECT_FALSE(report.vitals.accelerator_busy);
  ASSERT_EQ(report.accelerators.size(), 1u);
  EXPECT_THAT(figures_of(report.accelerators[0]), HasSubstr("not used by the target"));
}

TEST(AcceleratorRule, SleepingForADeviceIsAWaitOfItsKind) {
  Report report = sleeping_server().report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::accelerator) << report.verdict.sentence;
  EXPECT_THAT(report.verdict.sentence, HasSubstr("how busy the device is, is not known"));
  EXPECT_THAT(report.verdict.sentence, HasSubstr("called by infer_one"));
  EXPECT_NEAR(report.vitals.accelerator.value_or(0), 8.0 / 9, 0.02);
  EXPECT_EQ(report.vitals.poll, 0);
  auto finding = std::ranges::find(report.findings, "accelerator-waits", &Finding::id);
  ASSERT_NE(finding, report.findings.end());
  EXPECT_EQ(finding->where.symbol, "infer_one");
  EXPECT_FALSE(finding->gain.upper_bound) << "the run does not bound it";
}

TEST(AcceleratorRule, ComputingCpusAreTheLimitBesideADeviceThatIsNotFull) {
  FakeServer server;
  for (int i = 0; i < 2; ++i)
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 9), runs(kSpinForDevice, 0.5), waits(kTakeWork, 0.2)});
  add_device(server, 0.3);
  EXPECT_EQ(server.kind(), VerdictKind::cpu);
}

TEST(AcceleratorRule, AnInterpretersLibraryIsNamedWhereTheProgramIsNot) {
  FakeServer server(8, 4);
  server.thread(
      "python", "python",
      {runs({"_start", "Py_RunMain", "_PyEval_EvalFrameDefault",
             "libtorch_python.so:THCPModule_cudaSynchronize",
             "libtorch_cuda.so:at::cuda::synchronize", "libcudart.so.12:cudaDeviceSynchronize",
             "libcuda.so.1:inside", "[vdso]:__vdso_clock_gettime"},
            9),
       waits(kTakeWork, 1)});
  add_device(server, 1);
  EXPECT_THAT(server.report().verdict.sentence,
              HasSubstr("in cudaDeviceSynchronize, called by THCPModule_cudaSynchronize"));
}

// Neighbours keep the thread from the CPU: it sees late that the device is done.
TEST(AcceleratorRule, AThreadThatSpinsIsNoStageAndLacksCpus) {
  FakeServer server;
  server.thread("worker", "worker", {runs(kSpinForDevice, 2.5), queues(7), waits(kTakeWork, 0.1)});
  server.host_busy(1);
  add_device(server, 0.3);
  server.fact("usable_cpus", "2");
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::scheduler) << report.verdict.sentence;
  for (const Claim& claim : report.verdict.secondary)
    EXPECT_NE(claim.kind, VerdictKind::serial_stage);
}

// Code without names inside a driver is no reason to withhold.
TEST(AcceleratorRule, ADriverWithoutNamesIsKnownByTheCallThatItIsIn) {
  FakeServer server(8, 4);
  auto nameless = below_loop({"handle", "infer_one", "libcuda.so.1:cuStreamSynchronize", "?:0x77"});
  server.thread("worker", "worker",
                {runs(kCompute, 0.4), runs(nameless, 9), waits(kTakeWork, 0.6)});
  add_device(server, 1);
  Report report = server.report();
  EXPECT_GT(report.quality.on_cpu.unresolved, 0.5);
  EXPECT_EQ(report.verdict.kind, VerdictKind::accelerator) << report.verdict.sentence;
}

TEST(AcceleratorRule, RuleFileAndTableListTheSameCalls) {
  std::set<std::string> table, owns, below;
  for (const NameRow& row : accelerator_calls())
    table.insert(std::string(row.name) + (row.match == Match::prefix ? "*" : ""));
  for (const CategoryRule& rule : default_rules().categories) {
    if (rule.role != CategoryRole::accelerator) continue;
    owns.insert(rule.names.functions.begin(), rule.names.functions.end());
    below.insert(rule.under.functions.begin(), rule.under.functions.end());
  }
  EXPECT_EQ(owns, table);
  EXPECT_EQ(below, table);
}

}  // namespace
}  // namespace assay::analysis
