#include "cli/output/stat_output.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace assay::cli {
namespace {

using model::CounterId;

model::Counts with_clock(double ns) {
  model::Counts counts;
  counts[static_cast<size_t>(CounterId::cpu_clock)] = {true, ns, 1, ""};
  return counts;
}

double clock_of(const nlohmann::json& row) {
  return row.at("counters").at("task-clock").at("value").get<double>();
}

TEST(StatOutput, IntervalsAreToldApart) {
  EXPECT_EQ(interval_label(1.0004, kNsPerSecond), "1.0 s");
  EXPECT_EQ(interval_label(60.001, 10 * kNsPerSecond), "60.0 s");
  EXPECT_EQ(interval_label(0.2501, 250 * kNsPerMs), "0.25 s");
  EXPECT_EQ(interval_label(0.0101, 10 * kNsPerMs), "0.010 s");
  EXPECT_EQ(interval_label(0.0203, 10 * kNsPerMs), "0.020 s");
}

TEST(StatOutput, AnIntervalSaysWhenItWas) {
  auto row = nlohmann::json::parse(interval_json(0.5, 0.75, with_clock(7)));
  EXPECT_EQ(row.at("from_s"), 0.5);
  EXPECT_EQ(row.at("to_s"), 0.75);
  EXPECT_EQ(row.at("seconds"), 0.25);
  EXPECT_EQ(row.at("whole"), false);
  EXPECT_EQ(clock_of(row), 7);
}

TEST(StatOutput, TheWholeHasTheThreadsAndHowItEnded) {
  session::StatOutcome outcome;
  outcome.seconds = 2;
  outcome.processes = 1;
  outcome.threads = 3;
  outcome.counts = with_clock(30);
  outcome.voluntary_switches = 11;
  outcome.involuntary_switches = 4;
  outcome.end = session::EndReason::interrupted;
  outcome.per_thread = {{7, 7, "main", with_clock(10)}, {7, 8, "worker", with_clock(20)}};
  auto row = nlohmann::json::parse(whole_json(outcome));
  EXPECT_EQ(row.at("whole"), true);
  EXPECT_EQ(row.at("from_s"), 0.0);
  EXPECT_EQ(row.at("to_s"), 2.0);
  EXPECT_EQ(row.at("ended"), "interrupted");
  EXPECT_EQ(row.at("processes"), 1);
  EXPECT_EQ(row.at("threads"), 3);
  EXPECT_EQ(row.at("voluntary_switches"), 11);
  EXPECT_EQ(row.at("involuntary_switches"), 4);
  EXPECT_FALSE(row.contains("exit_code"));
  ASSERT_EQ(row.at("per_thread").size(), 2U);
  EXPECT_EQ(row.at("per_thread")[1].at("tid"), 8);
  EXPECT_EQ(row.at("per_thread")[1].at("name"), "worker");
  EXPECT_EQ(clock_of(row.at("per_thread")[1]), 20);
}

TEST(StatOutput, ALaunchedCommandsExitIsTold) {
  session::StatOutcome outcome;
  outcome.end = session::EndReason::target_exited;
  outcome.launched_exit = os::ExitStatus{true, 9};
  auto row = nlohmann::json::parse(whole_json(outcome));
  EXPECT_EQ(row.at("exit_code"), 137);
  EXPECT_EQ(row.at("ended"), "target ended");
}

TEST(StatOutput, AThreadsLabelSaysWhatIsInIt) {
  EXPECT_EQ(thread_label({7, 8, "worker", {}}), "worker (8) and what it started");
}

}  // namespace
}  // namespace assay::cli
