// Large targets: everything is in the run, or its loss is.
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

TEST_F(Scale, TwoThousandThreads) {
  Background target({program("many_threads"), "--count", "2000", "--for", "60", "--announce"});
  target.read_line();
  std::string path = record("many_threads", target);
  EXPECT_GE(count(path, "thread"), 2000);
  // Two thousand busy threads may leave no CPU to keep up with; then it is said, and times stay
  // right: switches are kept to the last.
  if (lost(path) > 0) {
    EXPECT_FALSE(report(path)["quality"]["limits"].empty()) << "loss is said";
  }
  // Blocked or not, every thread has its time: nearly all waited somewhere during the window.
  EXPECT_GE(sql(path, "SELECT count(DISTINCT tid) AS n FROM waits").at(0)["n"].get<int>(), 1990);
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
