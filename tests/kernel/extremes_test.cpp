// More threads, processes, forks and captures than a server usually has, and targets in a state
// that nobody expects. A capture ends well or says why not, and the target is not harmed.
#include <csignal>
#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"

namespace assay::kernel_test {
namespace {

// Room for so many more tasks; else the reason why not.
std::string why_too_few_tasks(long tasks) {
  long most = 0;
  std::ifstream("/proc/sys/kernel/pid_max") >> most;
  rlimit limit{};
  getrlimit(RLIMIT_NPROC, &limit);
  if (most < 2 * tasks) return fmt::format("skipped: kernel.pid_max is {}", most);
  if (limit.rlim_cur < static_cast<rlim_t>(2 * tasks))
    return fmt::format("skipped: the limit of processes is {}", limit.rlim_cur);
  return "";
}

// What the tests say of `record` they say of `heap` as well.
class Extremes : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string why = is_heap() ? why_not_attached() : why_skipped();
    if (!why.empty()) GTEST_SKIP() << why;
  }
  static bool is_heap() { return std::string(GetParam()) == "heap"; }
  static std::string name(const char* what) { return std::string(what) + "-" + GetParam(); }
  static std::vector<std::string> capture(const std::string& path, const Background& target,
                                          const char* time = "2s") {
    return {assay(), GetParam(), "-q",
            "-o",    path,       "--for",
            time,    "--pid",    std::to_string(target.pid())};
  }
  static int64_t count(const std::string& path, const std::string& what) {
    return sql(path, "SELECT count(*) AS n FROM " + what).at(0)["n"];
  }
};

TEST_P(Extremes, TenThousandThreads) {
  if (std::string why = why_too_few_tasks(10'000); !why.empty()) GTEST_SKIP() << why;
  Background target({program("many_sleepers"), "--count", "10000"});
  ASSERT_EQ(target.read_line(), "ready");
  std::string path = run_file(name("threads"));
  Finished done = run(capture(path, target), 120);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  target.signal(SIGTERM);
  Finished ended = target.wait();
  EXPECT_EQ(ended.exit_code, 0) << "the target was harmed: " << ended.out;
  if (!is_heap()) {
    int64_t lost = sql(path, "SELECT coalesce(sum(count), 0) AS n FROM loss").at(0)["n"];
    EXPECT_GE(count(path, "thread") + lost, 10'001);
  }
}

TEST_P(Extremes, AThousandProcesses) {
  if (std::string why = why_too_few_tasks(1'000); !why.empty()) GTEST_SKIP() << why;
  Background target({program("many_processes"), "--count", "1000", "--period-ms", "1000", "--for",
                     "300", "--announce"});
  target.read_line();
  std::string path = run_file(name("processes"));
  Finished done = run(capture(path, target), 240);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  if (!is_heap()) {
    EXPECT_GE(count(path, "process"), 1'000);
  }
  target.signal(SIGTERM);
  EXPECT_EQ(target.wait().exit_code, 0) << "the target was harmed";
}

TEST_P(Extremes, TwoHundredForksASecond) {
  Background target({program("fork_rate"), "--per-second", "200", "--for", "300", "--announce"});
  target.read_line();
  std::string path = run_file(name("forks"));
  Finished done = run(capture(path, target, "5s"), 120);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_GE(count(path, "process"), 1);
  target.signal(SIGTERM);
  Finished ended = target.wait();
  EXPECT_EQ(ended.exit_code, 0) << "children were harmed: " << ended.out;
  EXPECT_EQ(run({assay(), "report", path}).exit_code, 0);
}

TEST_P(Extremes, TwentyCapturesAtOnce) {
  constexpr size_t kCaptures = 20;
  std::vector<std::unique_ptr<Background>> targets, captures;
  std::vector<std::string> paths;
  for (size_t i = 0; i < kCaptures; ++i) {
    targets.push_back(
        std::make_unique<Background>(std::vector<std::string>{program("attach_target"), "idle"}));
    ASSERT_NE(targets.back()->read_line().find("ready"), std::string::npos);
  }
  for (size_t i = 0; i < kCaptures; ++i) {
    paths.push_back(run_file(name("twenty") + std::to_string(i)));
    captures.push_back(std::make_unique<Background>(capture(paths[i], *targets[i], "3s")));
  }
  for (size_t i = 0; i < kCaptures; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(captures[i]->wait().exit_code, 0);
    EXPECT_EQ(sql(paths[i], "SELECT value AS v FROM info WHERE key = 'finished'").at(0)["v"], 1);
    targets[i]->signal(SIGTERM);
    EXPECT_EQ(targets[i]->wait().exit_code, 0) << "the target was harmed";
  }
}

// Twenty captures of one and the same program. Only one sampler fits into it; the others say so.
TEST_P(Extremes, TwentyCapturesOfOneTarget) {
  Background target({program("attach_target"), "busy"});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  std::vector<std::unique_ptr<Background>> captures;
  for (int i = 0; i < 20; ++i)
    captures.push_back(std::make_unique<Background>(
        capture(run_file(name("same") + std::to_string(i)), target, "3s")));
  int good = 0;
  for (auto& one : captures) {
    int code = one->wait().exit_code;
    good += code == 0 ? 1 : 0;
    EXPECT_TRUE(code == 0 || (is_heap() && code == 1)) << code;
  }
  EXPECT_GE(good, is_heap() ? 1 : 20);
  target.signal(SIGTERM);
  EXPECT_EQ(target.wait().exit_code, 0) << "the target was harmed";
}

TEST_P(Extremes, ATargetThatBecomesAnotherProgram) {
  Background target({"sh", "-c", "echo ready; sleep 1.5; exec sleep 60"});
  target.read_line();
  std::string path = run_file(name("exec"));
  Finished done = run(capture(path, target, "3s"), 60);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(kill(target.pid(), 0), 0) << "the target goes on";
}

TEST_P(Extremes, ATargetThatDies) {
  Background target({program("attach_target"), "busy"});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  std::string path = run_file(name("dies"));
  Background recording(capture(path, target, "60s"));
  sleep(2);
  target.signal(SIGKILL);
  EXPECT_EQ(recording.wait().exit_code, 0);
  EXPECT_EQ(sql(path, "SELECT value AS v FROM info WHERE key = 'end_reason'").at(0)["v"],
            "target exited");
}

TEST_P(Extremes, ATargetThatIsStoppedInTheMiddle) {
  Background target({program("attach_target"), "idle"});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  std::string path = run_file(name("stopped"));
  Background recording(capture(path, target, "4s"));
  sleep(2);
  target.signal(SIGSTOP);
  // A sampler is taken out of a target when it runs again: Assay must not wait for that forever.
  EXPECT_EQ(recording.wait().exit_code, 0);
  target.signal(SIGCONT);
  EXPECT_EQ(run({assay(), "report", path}).exit_code, 0);
  usleep(300'000);
  target.signal(SIGTERM);
  EXPECT_EQ(target.wait().exit_code, 0) << "the target was harmed";
}

// Somebody's debugger has it. Time can be recorded; a sampler cannot be brought in, which is said.
TEST_P(Extremes, ATargetThatIsTracedBySomebodyElse) {
  Background target({program("attach_target"), "idle"});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  ASSERT_EQ(ptrace(PTRACE_SEIZE, target.pid(), nullptr, nullptr), 0);
  Finished done = run(capture(run_file(name("traced")), target), 60);
  EXPECT_EQ(done.exit_code, is_heap() ? 1 : 0) << done.err;
  if (is_heap()) {
    EXPECT_NE(done.err.find("traced already"), std::string::npos) << done.err;
  }
}

// A container may have a clock of its own, hundreds of days beside ours.
TEST_P(Extremes, ATargetWithAnotherClock) {
  std::vector<std::string> elsewhere{"unshare",    "--time",   "--monotonic", "30000000",
                                     "--boottime", "30000000", "--fork",      "--kill-child"};
  std::vector<std::string> tried = elsewhere;
  tried.push_back("true");
  if (run(tried).exit_code != 0) GTEST_SKIP() << "skipped: no time namespace can be made here";
  std::string path = run_file(name("clock"));
  std::vector<std::string> argv{assay(), GetParam(), "-q", "-o", path, "--"};
  argv.insert(argv.end(), elsewhere.begin(), elsewhere.end());
  argv.insert(argv.end(), {program("planted_heap"), "2000"});
  Finished done = run(argv, 60);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_GT(count(path, is_heap() ? "heap" : "waits"), 0) << done.err;
  int64_t longest = sql(path,
                        "SELECT max(value) - min(value) AS v FROM info WHERE key IN "
                        "('window_begin_ns', 'window_end_ns')")
                        .at(0)["v"];
  EXPECT_LT(longest, int64_t{60} * 1'000'000'000);
}

INSTANTIATE_TEST_SUITE_P(Under, Extremes, testing::Values("record", "heap"),
                         [](const auto& command) { return command.param; });

}  // namespace
}  // namespace assay::kernel_test
