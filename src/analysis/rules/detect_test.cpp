// Every detector fires on its example and stays silent on what looks like it.
#include "analysis/rules/detect.h"

#include <functional>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/fake_server.h"
#include "analysis/verdict/vitals.h"

namespace assay::analysis {
namespace {

using model::SeriesScope;

bool fired(const Report& report, const std::string& id) {
  for (const Finding& finding : report.findings) {
    if (finding.id == id) return true;
  }
  return false;
}

const DetectorRule& rule(const std::string& id) {
  for (const DetectorRule& one : default_rules().detectors) {
    if (one.id == id) return one;
  }
  throw std::runtime_error("no detector " + id);
}

// What a server must be like besides the example for the detector's other conditions to hold.
using Setup = std::function<void(FakeServer&)>;
const std::map<std::string, Setup> kSetups{
    {"serial-completion-queue",
     [](FakeServer& s) {
       s.fact("usable_cpus", "8");
       s.thread(
           "cq", "cq",
           {runs({"main", "Server::HandleRpcs", "CallData::Proceed"}, 9.8), waits(kTakeWork, 0.2)});
     }},
    {"small-writes",
     [](FakeServer& s) {
       s.load("throughput_per_s", "1000");
       s.grows(SeriesScope::socket, "bytes_acked", 100'000, "port 80 inbound");
     }},
    {"empty-reads",
     [](FakeServer& s) {
       s.thread("p", "p", {runs({"main", "poll"}, 0.005), waits({"main", "poll", "k:ep_poll"}, 5)});
     }},
    {"notify-all",
     [](FakeServer& s) {
       s.thread("p", "p",
                {runs({"main"}, 0.005),
                 waits({"main", "libc.so.6:pthread_cond_wait", "k:futex_wait_queue"}, 5)});
     }},
    {"go-idle-spinning", [](FakeServer& s) { s.fact("usable_cpus", "8"); }},
    {"delayed-ack",
     [](FakeServer& s) {
       s.thread("p", "p", {runs({"main"}, 1), waits({"main", "k:sk_wait_data"}, 40)});
     }},
    {"accelerator-spinning",
     [](FakeServer& s) {
       s.thread("g", "g",
                {runs({"main", "infer", "libcuda.so.1:cuStreamSynchronize"}, 9),
                 waits(kTakeWork, 1)});
     }},
    {"one-connection",
     [](FakeServer& s) {
       s.level(SeriesScope::socket, "connections", 1, "port 80 inbound");
       s.load("connections", "1");
       s.load("streams", "64");
     }},
    {"blocked-event-loop",
     [](FakeServer& s) {
       s.fact("usable_cpus", "8");
       s.thread("loop", "loop", {runs(kCompute, 9.8), waits(kTakeWork, 0.2)});
       s.level(SeriesScope::socket, "recv_q", 500, "port 80 inbound");
     }},
    {"thundering-herd",
     [](FakeServer& s) {
       for (int i = 0; i < 40; ++i)
         s.thread("p" + std::to_string(i), "p-*",
                  {runs({"main", "poll"}, 0.005), waits({"main", "poll", "k:ep_poll"}, 5)});
     }},
    {"lock-convoy",
     [](FakeServer& s) {
       for (int i = 0; i < 4; ++i)
         s.thread("c" + std::to_string(i), "c-*",
                  {runs(kCompute, 0.02), waits(kTakeLock, 0.1 + i * 0.001, 0x2000)});
     }},
    {"false-sharing", [](FakeServer& s) { s.level(SeriesScope::host, "hitm_share", 1); }},
    {"hot-function",
     [](FakeServer& s) {
       s.thread("h", "h", {runs(kCompute, 5), waits(kTakeWork, 5)});
     }},
    {"sleep-on-request",
     [](FakeServer& s) {
       s.thread("h", "h", {runs(kCompute, 5), waits(kSleep, 3), waits(kTakeWork, 2)});
     }},
    {"downstream-waits",
     [](FakeServer& s) {
       s.thread("h", "h", {runs(kCompute, 5), waits(kAskBackend, 3), waits(kTakeWork, 2)});
     }},
    {"send-waits",
     [](FakeServer& s) {
       s.thread("h", "h", {runs(kCompute, 5), waits(kSendBlocked, 3), waits(kTakeWork, 2)});
     }},
    {"handoff-waits",
     [](FakeServer& s) {
       s.thread("h", "h",
                {runs(kCompute, 5),
                 waits(below_loop({"handle", "Future::get", "libc.so.6:pthread_cond_wait",
                                   "k:futex_wait_queue"}),
                       3),
                 waits(kTakeWork, 2)});
     }},
    {"cpu-quota",
     [](FakeServer& s) {
       s.grows(SeriesScope::cgroup, "periods", 10, "/x");
       s.grows(SeriesScope::cgroup, "throttled_periods", 5, "/x");
     }},
    {"oversubscription",
     [](FakeServer& s) {
       for (int i = 0; i < 8; ++i)
         s.thread("o" + std::to_string(i), "o-*", {runs(kCompute, 5), queues(15)});
     }},
    {"confined-to-few-cpus",
     [](FakeServer& s) {
       s.fact("usable_cpus", "1");
       s.fact("usable_cpus_bound_by", "affinity");
       s.host_busy(0.4);
       for (int i = 0; i < 2; ++i)
         s.thread("o" + std::to_string(i), "o-*",
                  {runs(kCompute, 2), queues(2), waits(kTakeWork, 4)});
     }},
    {"noisy-neighbour",
     [](FakeServer& s) {
       s.host_busy(0.99);
       s.thread("o", "o", {runs(kCompute, 2), queues(3), waits(kTakeWork, 4)});
     }},
    {"softirq-on-one-cpu",
     [](FakeServer& s) { s.grows(SeriesScope::host, "cpu_softirq", 0.97e9); }},
    {"accept-queue-full",
     [](FakeServer& s) {
       s.level(SeriesScope::socket, "accept_backlog", 120, "*:80 listen");
       s.level(SeriesScope::socket, "accept_backlog_limit", 128, "*:80 listen");
     }},
    {"major-faults", [](FakeServer& s) { s.grows(SeriesScope::process, "major_faults", 100); }},
    {"migration-storm", [](FakeServer& s) { s.grows(SeriesScope::thread, "migrations", 5000); }},
    {"fault-storm", [](FakeServer& s) { s.grows(SeriesScope::process, "minor_faults", 40000); }},
    {"memory-bound",
     [](FakeServer& s) {
       s.grows(SeriesScope::process, "cycles", 2e9);
       s.grows(SeriesScope::process, "instructions", 1e9);
       s.grows(SeriesScope::process, "llc_misses", 2e7);
     }},
    {"branch-bound",
     [](FakeServer& s) {
       s.grows(SeriesScope::process, "cycles", 2e9);
       s.grows(SeriesScope::process, "instructions", 2e9);
       s.grows(SeriesScope::process, "branch_misses", 4e7);
     }},
    {"debug-build", [](FakeServer& s) { s.fact("build", "debug"); }},
};

// A server whose workers compute and, in between, do what the stack says for `ms` of every 10.
FakeServer server_with(const DetectorRule& rule, const std::vector<std::string>& stack, double ms,
                       bool with_setup) {
  FakeServer server;
  using enum DetectorRule::Measure;
  bool is_wait = rule.measure == wait || rule.measure == lock;
  std::vector<Step> cycle{runs(kCompute, 4)};
  if (!stack.empty()) {
    std::vector<std::string> full = stack;
    // Waits of a request lie below the loop and a handler that works.
    if (is_wait) {
      full = below_loop({"handle"});
      full.insert(full.end(), stack.begin(), stack.end());
      cycle = {runs(kCompute, 4), waits(full, ms, rule.measure == lock ? 0x1000 : 0)};
    } else {
      cycle.push_back(runs(full, ms));
    }
  }
  cycle.push_back(waits(kTakeWork, 2));
  server.thread("worker-1", "worker-*", cycle);
  auto setup = kSetups.find(rule.id);
  if (with_setup && setup != kSetups.end()) setup->second(server);
  return server;
}

class EveryDetector : public testing::TestWithParam<std::string> {};

TEST_P(EveryDetector, FiresOnItsExample) {
  const DetectorRule& one = rule(GetParam());
  bool has_case = !one.example.empty() || kSetups.contains(one.id);
  ASSERT_TRUE(has_case) << "a detector needs an example in its file or a setup here";
  Report report = server_with(one, one.example, 4, true).report();
  EXPECT_TRUE(fired(report, one.id));
  for (const Finding& finding : report.findings) {
    if (finding.id != one.id) continue;
    EXPECT_FALSE(finding.title.empty());
    EXPECT_FALSE(finding.because.empty());
    EXPECT_FALSE(finding.recommendation.empty());
    EXPECT_FALSE(finding.evidence.empty());
    EXPECT_LE(finding.share.low, finding.share.share);
    EXPECT_GE(finding.share.high, finding.share.share);
  }
}

TEST_P(EveryDetector, StaysSilentWithoutItsCause) {
  const DetectorRule& one = rule(GetParam());
  if (one.example.empty()) {
    // The same server without the cause: only computes and waits for work.
    Report report = server_with(one, {}, 0, false).report();
    if (one.id != "hot-function") {
      EXPECT_FALSE(fired(report, one.id));
    }
    return;
  }
  ASSERT_FALSE(one.counter_example.empty()) << "say in the rule's file what it is not about";
  EXPECT_FALSE(fired(server_with(one, one.counter_example, 4, false).report(), one.id));
}

TEST_P(EveryDetector, StaysSilentBelowItsThreshold) {
  const DetectorRule& one = rule(GetParam());
  if (one.example.empty()) return;  // no share to vary
  EXPECT_FALSE(fired(server_with(one, one.example, 0.02, false).report(), one.id));
}

std::vector<std::string> ids() {
  std::vector<std::string> all;
  for (const DetectorRule& one : default_rules().detectors) all.push_back(one.id);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Detect, EveryDetector, testing::ValuesIn(ids()), [](const auto& one) {
  std::string name = one.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Detect, HotFunctionIsSilentWhereNothingStandsOut) {
  FakeServer server;
  std::vector<Step> cycle{waits(kTakeWork, 2)};
  for (int i = 0; i < 40; ++i)
    cycle.push_back(runs(below_loop({"handle_" + std::to_string(i)}), 0.2));
  server.thread("w", "w", cycle);
  EXPECT_FALSE(fired(server.report(), "hot-function"));
}

TEST(Detect, CauseNamesTheProgramsOwnFunction) {
  FakeServer server;
  for (int i = 0; i < 2; ++i)
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 6), runs(kMalloc, 3), waits(kTakeWork, 0.5)});
  Report report = server.report();
  for (const Finding& finding : report.findings) {
    if (finding.id == "malloc-cost") {
      EXPECT_EQ(finding.where.symbol, "handle");
      EXPECT_EQ(finding.where.file, "/src/server.cpp");
      EXPECT_GT(finding.gain.upper_bound.value_or(0), 0.3);
    }
  }
  EXPECT_TRUE(fired(report, "malloc-cost"));
}

// Work that is not at the bottleneck has no bound either: under a lock it makes the waits longer.
TEST(Gain, WhatIsNotOnTheBottleneckIsRankedBehindWhatIs) {
  FakeServer server(8, 4);
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 0.7), runs(kMalloc, 0.3), waits(kTakeLock, 6, 0x1000),
                   waits(kTakeWork, 1)});
  }
  Report report = server.report();
  ASSERT_EQ(report.verdict.kind, VerdictKind::lock);
  bool saw_other = false, saw_gain = false;
  for (const Finding& finding : report.findings) {
    if (finding.id == "malloc-cost") {
      saw_other = true;
      EXPECT_TRUE(saw_gain) << "it stands behind the lock";
      EXPECT_FALSE(finding.gain.upper_bound);
    }
    if (finding.id == "contended-lock" || finding.id == "lock-convoy") {
      saw_gain = finding.gain.upper_bound.value_or(0) > 0.5;
      EXPECT_THAT(finding.gain.text, testing::HasSubstr("upper bound"));
    }
  }
  EXPECT_TRUE(saw_other);
  EXPECT_TRUE(saw_gain);
}

// The gain never exceeds what the next resource allows.
TEST(Gain, IsCappedByTheNextResource) {
  FakeServer server(8, 2);
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*", {runs(kCompute, 4), waits(kTakeLock, 6, 0x1000)});
  }
  Report report = server.report();
  ASSERT_EQ(report.verdict.kind, VerdictKind::lock);
  for (const Finding& finding : report.findings) {
    if (finding.gain.upper_bound) {
      EXPECT_LE(*finding.gain.upper_bound, 1 / *report.vitals.utilisation - 1 + 1e-9);
    }
  }
}

TEST(Suspects, ConfirmedRefutedOrNotMeasurable) {
  FakeServer server;
  for (int i = 0; i < 2; ++i)
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 8), runs(kMalloc, 0.5), waits(kTakeWork, 0.5)});
  Options options;
  options.suspects = {"^compute$", "malloc", "serialize"};
  Report report = server.report(options);
  ASSERT_EQ(report.suspects.size(), 3u);
  EXPECT_EQ(report.suspects[0].answer, "confirmed");
  EXPECT_EQ(report.suspects[1].answer, "refuted");
  EXPECT_EQ(report.suspects[2].answer, "not measurable");
  EXPECT_FALSE(report.suspects[0].evidence.empty());
  options.suspects = {"("};
  EXPECT_FALSE(analyse(server.run(), options));
}

TEST(Cleared, NamesWhatTheNumbersClear) {
  FakeServer server;
  for (int i = 0; i < 2; ++i)
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 9), runs(kMalloc, 0.1), waits(kTakeWork, 0.5)});
  std::map<std::string, double> cleared;
  for (const NotBottleneck& one : server.report().not_bottlenecks) cleared[one.what] = one.share;
  EXPECT_TRUE(cleared.contains("memory allocation"));
  EXPECT_TRUE(cleared.contains("waiting for locks"));
}

TEST(Source, LinesAroundTheFindingComeFromTheCaller) {
  FakeServer server;
  server.thread("w", "w", {runs(kCompute, 9), waits(kTakeWork, 0.5)});
  Options options;
  options.source = [](const std::string& file, uint32_t first, uint32_t last) {
    EXPECT_EQ(file, "/src/server.cpp");
    return std::vector<std::string>(last - first + 1, "x = y;");
  };
  Report report = server.report(options);
  ASSERT_TRUE(fired(report, "hot-function"));
  for (const Finding& finding : report.findings) {
    if (finding.id != "hot-function") continue;
    EXPECT_EQ(finding.evidence[0].source.size(), 5u);
  }
}

}  // namespace
}  // namespace assay::analysis
