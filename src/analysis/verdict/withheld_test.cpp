// One test per reason of withheld.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/fake_server.h"

namespace assay::analysis {
namespace {

using model::SeriesScope;
using testing::HasSubstr;
using testing::Not;

void expect_withheld(const FakeServer& server, const std::string& why, bool guessed = true) {
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::withheld);
  EXPECT_THAT(report.verdict.sentence, HasSubstr(why));
  ASSERT_FALSE(report.verdict.remedies.empty());
  EXPECT_FALSE(report.verdict.remedies[0].empty());
  EXPECT_EQ(report.verdict.secondary.empty(), !guessed) << "what it would have been";
  for (const Finding& finding : report.findings) EXPECT_FALSE(finding.gain.upper_bound);
}

TEST(Withheld, DebugBuild) {
  FakeServer server = busy_server();
  server.fact("build", "debug");
  expect_withheld(server, "debug build");
}
// A server that ends while it is looked at did not serve; a command ran as long as it wanted to.
TEST(Withheld, ATargetThatEndsAtOnce) {
  FakeServer server(2);
  for (int i = 0; i < 2; ++i)
    server.thread("w" + std::to_string(i), "w-*", {runs(kCompute, 9.5), waits(kTakeWork, 0.5)});
  model::RunInfo& info = server.run().edit().info;
  info.end_reason = "target exited";
  info.finished = true;
  info.target = "-- ./server";
  EXPECT_NE(server.kind(), VerdictKind::withheld);
  info.target = "--port 80";
  expect_withheld(server, "the target ended");
}
TEST(Withheld, Sanitizers) {
  FakeServer server = busy_server();
  server.fact("sanitizers", "address");
  expect_withheld(server, "sanitizers");
}
TEST(Withheld, CheckedContainers) {
  FakeServer server = busy_server();
  server.fact("debug_containers", "yes");
  expect_withheld(server, "checked containers");
}
TEST(Withheld, DebugFunctionsEvenWithoutTheFact) {
  FakeServer server;
  auto slow =
      below_loop({"handle", "absl::Mutex::Lock()", "absl::DebugOnlyLockEnter(absl::Mutex*)"});
  for (int i = 0; i < 2; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 8), runs(slow, 1), waits(kTakeWork, 0.5)});
  }
  expect_withheld(server, "deadlock checking");
}
TEST(Withheld, ImportedProfilesWithoutWaits) {
  FakeServer server = busy_server();
  server.run().edit().info.backend = "import: pprof";
  server.run().edit().info.target = "cpu.pb.gz";
  EXPECT_NE(server.kind(), VerdictKind::withheld)
      << "an imported file that has both views is judged";
  server.run().edit().facts.push_back({"import", "waits", "absent"});
  expect_withheld(server, "nothing of time off the CPU", false);
  server.run().edit().facts.back() = {"import", "times", "absent"};
  expect_withheld(server, "sums without times", false);
  EXPECT_THAT(server.report().verdict.next_command, Not(HasSubstr("cpu.pb.gz")));
  server.run().edit().facts.back() = {"import", "meaning", "unsaid"};
  expect_withheld(server, "time on the CPU or time blocked", false);
  server.run().edit().facts.back() = {"import", "unit", "bytes"};
  EXPECT_THAT(server.report().verdict.sentence, ::testing::HasSubstr("counts bytes, not time"));
  EXPECT_TRUE(server.report().findings.empty());
  EXPECT_TRUE(server.report().categories.empty());
  server.run().edit().facts.back() = {"import", "unit", "goroutine"};
  expect_withheld(server, "counts goroutine, not time", false);
  EXPECT_EQ(server.report().verdict.remedies.front(), "record the server itself");
  EXPECT_TRUE(server.report().findings.empty());
  server.run().edit().facts.back() = {"import", "unit", "cycles"};
  EXPECT_NE(server.kind(), VerdictKind::withheld) << "cycles stand for time on the CPU";
}
TEST(Withheld, ImportedWaitsWithoutSamples) {
  FakeServer server;
  server.run().edit().info.backend = "import: perf script";
  server.thread("w", "w", {waits(kTakeLock, 5), waits(kTakeWork, 5)});
  expect_withheld(server, "nothing of time on the CPU", false);
  Verdict verdict = server.report().verdict;
  EXPECT_EQ(verdict.remedies, std::vector<std::string>{"record the server itself"});
  EXPECT_THAT(verdict.next_step, Not(HasSubstr("record again")));
}
TEST(Withheld, RunsOfTheHeapAlone) {
  FakeServer server;
  server.run().edit().info.backend = "heap";
  auto thread = server.run().add_thread(server.process(), 101, "server");
  server.run().add_alloc(thread, server.run().stack({"main", "keep"}), 5, 1000, 1000);
  expect_withheld(server, "heap alone", false);
}
TEST(Withheld, LostRecords) {
  FakeServer server = busy_server();
  server.run().edit().losses = {{model::LossKind::ring_records, 0, 0, 1000}};
  expect_withheld(server, "lost");
}
TEST(Withheld, UnresolvedFunctions) {
  FakeServer server;
  for (int i = 0; i < 2; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs({"main", "?:0x4c2f0"}, 9), waits(kTakeWork, 0.5)});
  }
  expect_withheld(server, "without names");
}
TEST(Withheld, GeneratorSaturated) {
  FakeServer server = busy_server();
  server.load("generator_saturated", "yes");
  expect_withheld(server, "load generator");
}
TEST(Withheld, Errors) {
  FakeServer server = busy_server();
  server.load("requests", "8000");
  server.load("errors", "400");
  expect_withheld(server, "failed");
}
TEST(Withheld, Drift) {
  FakeServer server = busy_server();
  std::vector<std::pair<TimeNs, int64_t>> points;
  int64_t sum = 0;
  for (int s = 0; s <= 8; ++s) points.emplace_back(s * kNsPerSecond, sum += 1000 + 200 * s);
  server.run().add_series(SeriesScope::load, 0, "requests", points);
  server.load("mode", "closed");
  expect_withheld(server, "throughput changed");
}
// 8 s at 99 Hz on 2 CPUs is enough; a tenth of a second is not: widths decide, not a count.
TEST(Withheld, FewSamples) {
  FakeServer server(1, 2, 20);
  for (int i = 0; i < 2; ++i)
    server.thread("w" + std::to_string(i), "w-*", {runs(kCompute, 9), waits(kTakeWork, 0.5)});
  expect_withheld(server, "samples");
}
TEST(Withheld, LoadThatEndedEarly) {
  FakeServer server = busy_server();
  server.run().edit().facts.push_back({"load", "kind", "command"});
  server.run().edit().facts.push_back({"load", "ended", "early: exit status 1"});
  expect_withheld(server, "did not cover");
}
TEST(Withheld, EmptyRun) {
  FakeRun run;
  run.edit() = {};
  Verdict verdict = analyse(run, {}).value().verdict;
  EXPECT_EQ(verdict.kind, VerdictKind::withheld);
  EXPECT_TRUE(verdict.secondary.empty()) << "nothing ran: nothing can be guessed";
}
// A small helper that was built for debugging does not spoil the run of the server.
TEST(Withheld, NotForAHelpersBuild) {
  FakeServer server = busy_server();
  auto helper = server.run().add_process(200, "/opt/helper", "helper");
  server.thread_of(helper, "helper", "helper",
                   {runs({"main"}, 0.1), waits({"main", "k:ep_poll"}, 99)});
  server.run().edit().facts.push_back({"process 1", "build", "debug"});
  EXPECT_EQ(server.kind(), VerdictKind::cpu);
}

}  // namespace
}  // namespace assay::analysis
