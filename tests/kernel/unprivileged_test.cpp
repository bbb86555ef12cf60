// What an ordinary user gets from their own processes at perf_event_paranoid 2: durations for every
// wait, user stacks for samples, and a run that says what is missing.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "harness.h"

namespace assay::kernel_test {
namespace {

class Unprivileged : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string why = why_skipped();
    if (!why.empty()) GTEST_SKIP() << why;
    if (run({"setpriv", "--version"}).exit_code != 0) GTEST_SKIP() << "skipped: setpriv is missing";
  }
  // Runs a command as nobody, without capabilities.
  static std::vector<std::string> as_nobody(std::vector<std::string> command) {
    std::vector<std::string> argv{"setpriv",
                                  "--reuid=65534",
                                  "--regid=65534",
                                  "--clear-groups",
                                  "--inh-caps=-all",
                                  "--bounding-set=-all",
                                  "--"};
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }
};

TEST_F(Unprivileged, OwnProcessesGiveDurationsAndSayWhatIsMissing) {
  std::string directory = run_file("nobody") + ".d";
  std::filesystem::create_directories(directory);
  std::filesystem::permissions(directory, std::filesystem::perms::all);
  std::filesystem::permissions(std::filesystem::path(directory).parent_path(),
                               std::filesystem::perms::all);
  std::string path = directory + "/run.assay";
  Finished recording = run(as_nobody({assay(), "record", "-q", "-o", path, "--",
                                      program("busy_share"), "--percent", "30", "--for", "2"}));
  if (recording.exit_code != 0 && recording.err.find("Permission denied") != std::string::npos &&
      recording.err.find("perf") == std::string::npos) {
    GTEST_SKIP() << "skipped: nobody cannot reach the test's files: " << recording.err;
  }
  ASSERT_EQ(recording.exit_code, 0) << recording.err;
  auto truths = parse_truths(recording.out);
  ASSERT_FALSE(truths.empty());
  int64_t waited =
      sql(path,
          "SELECT coalesce(sum(duration_ns), 0) AS n FROM waits WHERE flags NOT LIKE '%preempted%'")
          .at(0)["n"];
  int64_t truth = 0;
  for (const Truth& thread : truths) truth += thread.wait_ns;
  // 5 %: inherited events attach to a thread a moment after it began.
  EXPECT_NEAR(static_cast<double>(waited), static_cast<double>(truth),
              0.05 * static_cast<double>(truth) + 2e7);
  EXPECT_GT(report(path)["quality"]["samples"].get<int>(), 10);
  auto notes = sql(path, "SELECT count(*) AS n FROM note WHERE topic = 'kernel'");
  EXPECT_EQ(notes.at(0)["n"].get<int>(), 1) << "it says that the kernel's side is missing";
}

// Workers that are forked after attaching have channels that Assay holds already: Assay need not
// open files of theirs, which only root may.
TEST_F(Unprivileged, WorkersOfOnesOwnAttachedProcessAreSampled) {
  std::ifstream yama("/proc/sys/kernel/yama/ptrace_scope");
  if (int scope = 0; yama >> scope && scope != 0)
    GTEST_SKIP() << "skipped: kernel.yama.ptrace_scope is not 0";
  std::string directory = run_file("nobody-heap") + ".d";
  std::filesystem::create_directories(directory);
  for (const auto& path : {directory, std::filesystem::path(directory).parent_path().string()})
    std::filesystem::permissions(path, std::filesystem::perms::all);
  std::string run_path = directory + "/run.assay";
  Background target(as_nobody({program("attach_target"), "prefork"}));
  if (target.read_line().find("ready") == std::string::npos)
    GTEST_SKIP() << "skipped: nobody cannot reach the test's files";
  Finished done = run(as_nobody({assay(), "heap", "-q", "-o", run_path, "--for", "4s", "--pid",
                                 std::to_string(target.pid())}));
  ASSERT_EQ(done.exit_code, 0) << done.err;
  auto processes = sql(run_path, "SELECT pid, count(*) AS n FROM heap GROUP BY pid");
  EXPECT_EQ(processes.size(), 3u) << "the parent and two workers";
  auto held = sql(run_path, "SELECT count(*) AS n FROM fact WHERE key LIKE 'attach_pause_%'");
  EXPECT_EQ(held.at(0)["n"].get<int>(), 1) << "no worker was held to attach to it";
  target.signal(SIGTERM);
  Finished ended = target.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
}

TEST_F(Unprivileged, AnotherUsersProcessIsAClearError) {
  Background target({program("sleeper"), "--for", "30", "--announce"});
  target.read_line();
  Finished recording =
      run(as_nobody({assay(), "record", "-q", "-o", "/tmp/assay-never-written.assay", "--for", "1s",
                     "--pid", std::to_string(target.pid())}));
  EXPECT_EQ(recording.exit_code, 1);
  EXPECT_NE(recording.err.find("try:"), std::string::npos) << recording.err;
  EXPECT_FALSE(std::filesystem::exists("/tmp/assay-never-written.assay"));
}

}  // namespace
}  // namespace assay::kernel_test
