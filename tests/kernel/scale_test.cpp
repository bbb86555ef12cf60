// Large targets: everything is in the run, or its loss is.
#include <csignal>
#include <map>

#include <gtest/gtest.h>

#include "harness.h"

namespace assay::kernel_test {
namespace {

class Scale : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string why = why_skipped();
    if (!why.empty()) GTEST_SKIP() << why;
  }
  static int64_t count(const std::string& path, const std::string& what) {
    return sql(path, "SELECT count(*) AS n FROM " + what).at(0)["n"];
  }
  static int64_t lost(const std::string& path) {
    return sql(path, "SELECT coalesce(sum(count), 0) AS n FROM loss").at(0)["n"];
  }
  // Attaches for two seconds to a program that is already running.
  static std::string record(const std::string& name, const Background& target) {
    std::string path = run_file(name);
    Finished recording = run({assay(), "record", "-q", "-o", path, "--for", "2s", "--pid",
                              std::to_string(target.pid())});
    EXPECT_EQ(recording.exit_code, 0) << recording.err;
    return path;
  }
};

// Loss is reported; everything else is in the run: every thread, its time, its waits.
TEST_F(Scale, TwoThousandThreads) {
  Background target({program("many_threads"), "--count", "2000", "--for", "300", "--announce"});
  target.read_line();
  std::string path = record("many_threads", target);
  target.signal(SIGTERM);
  auto truths = parse_truths(target.wait().out);
  ASSERT_EQ(truths.size(), 2001u);

  Census seen = census(path, truths);
  EXPECT_TRUE(seen.is_honest()) << seen.missing << " threads are missing, " << seen.lost
                                << " records lost";
  nlohmann::json whole = report(path);
  const nlohmann::json& quality = whole["quality"];
  if (seen.lost > 0) {
    EXPECT_TRUE(seen.said) << quality.dump(1);
  }

  // All of them lived throughout, so each has the whole window, and its parts make it up.
  int64_t window = whole["workload"]["window_ns"];
  std::map<pid_t, int64_t> walls;
  for (const auto& thread : whole["threads"]) walls[thread["tid"]] = thread["wall_ns"];
  size_t whole_lives = 0;
  for (const Truth& truth : truths) whole_lives += walls[truth.tid] == window;
  EXPECT_EQ(whole_lives + seen.missing, truths.size());

  EXPECT_EQ(quality["accounting"]["threads_unseen"].get<int>(), 0) << quality["accounting"].dump();

  // As many waits and as much CPU time as the threads say they had in such a time. They report on
  // their whole life, of which the window is a part: the tolerance of a fifth covers variation over
  // time.
  double expected = 0, expected_cpu = 0, running = 0;
  for (const Truth& truth : truths) {
    double part = static_cast<double>(window) / static_cast<double>(truth.wall_ns);
    expected += static_cast<double>(truth.waits) * part;
    expected_cpu += static_cast<double>(truth.cpu_ns) * part;
  }
  for (const auto& thread : whole["threads"])
    running += thread["user_ns"].get<double>() + thread["kernel_ns"].get<double>();
  if (seen.lost == 0) {
    EXPECT_NEAR(running, expected_cpu, 0.2 * expected_cpu);
  }
  int64_t waits =
      sql(path, "SELECT count(*) AS n FROM waits WHERE flags NOT LIKE '%preempted%'").at(0)["n"];
  EXPECT_GT(static_cast<double>(waits + seen.lost), 0.5 * expected);
  int sleepers = sql(path, "SELECT count(DISTINCT tid) AS n FROM waits").at(0)["n"];
  EXPECT_GE(sleepers + seen.lost, 2001);
}

TEST_F(Scale, TwoHundredProcesses) {
  Background target({program("many_processes"), "--count", "200", "--for", "60", "--announce"});
  target.read_line();
  std::string path = record("many_processes", target);
  EXPECT_GE(count(path, "process"), 200);
  EXPECT_EQ(lost(path), 0);
}

TEST_F(Scale, AThousandShortThreadsASecond) {
  std::string path = run_file("churn");
  Finished recording = run({assay(), "record", "-q", "-o", path, "--", program("thread_churn"),
                            "--per-second", "1000", "--for", "3"});
  ASSERT_EQ(recording.exit_code, 0) << recording.err;
  auto truths = parse_truths(recording.out);
  int64_t threads = count(path, "thread");
  EXPECT_GE(threads, static_cast<int64_t>(truths.size()))
      << "each thread that reported itself is in the run";
  EXPECT_EQ(lost(path), 0);
}

TEST_F(Scale, TenThousandMappings) {
  Background target({program("many_mappings"), "--count", "10000", "--for", "60", "--announce"});
  target.read_line();
  std::string path = record("many_mappings", target);
  EXPECT_GE(count(path, "mapping"), 10000);
  EXPECT_GT(count(path, "samples"), 10);
}

}  // namespace
}  // namespace assay::kernel_test
