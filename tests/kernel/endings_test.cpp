// However a capture ends, its data are in a file that opens, and the target is not affected.
#include <filesystem>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include "harness.h"

namespace assay::kernel_test {
namespace {

class Endings : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string why = why_skipped();
    if (!why.empty()) GTEST_SKIP() << why;
  }
  // A busy program with sleeps, running beside the test.
  std::unique_ptr<Background> start_target(const std::string& seconds = "30") {
    auto target = std::make_unique<Background>(std::vector<std::string>{
        program("busy_share"), "--percent", "30", "--for", seconds, "--announce"});
    EXPECT_NE(target->read_line().find("ready"), std::string::npos);
    return target;
  }
  static std::string pid_of(const Background& program) { return std::to_string(program.pid()); }
  static int64_t waits_in(const std::string& path) {
    return sql(path, "SELECT count(*) AS n FROM waits").at(0)["n"];
  }
};

TEST_F(Endings, CtrlCKeepsEverything) {
  auto target = start_target();
  std::string path;
  // How long it takes until the capture has begun depends on the machine's load.
  for (unsigned seconds : {2u, 4u, 8u}) {
    path = run_file("interrupted");
    Background recording(
        {assay(), "record", "-q", "-o", path, "--for", "60s", "--pid", pid_of(*target)});
    sleep(seconds);
    recording.signal(SIGINT);
    ASSERT_EQ(recording.wait().exit_code, 0);
    if (waits_in(path) > 10) break;
  }
  nlohmann::json run_report = report(path);
  EXPECT_EQ(sql(path, "SELECT value AS v FROM info WHERE key = 'end_reason'").at(0)["v"],
            "interrupted");
  EXPECT_GT(waits_in(path), 10);
  EXPECT_GT(run_report["quality"]["samples"].get<int>(), 10);
  EXPECT_EQ(kill(target->pid(), 0), 0) << "the target goes on";
}

TEST_F(Endings, TheTargetsDeathEndsTheCaptureInGoodOrder) {
  Background target({program("dying"), "--after-ms", "1500", "--crash"});
  usleep(300'000);  // it prints nothing before its end
  std::string path = run_file("death");
  Finished recording = run(
      {assay(), "record", "-q", "-o", path, "--for", "60s", "--pid", std::to_string(target.pid())},
      30);
  EXPECT_EQ(recording.exit_code, 0) << recording.err;
  EXPECT_EQ(sql(path, "SELECT value AS v FROM info WHERE key = 'end_reason'").at(0)["v"],
            "target exited");
  EXPECT_EQ(
      sql(path, "SELECT count(*) AS n FROM process WHERE end_ns IS NULL").at(0)["n"].get<int>(), 0);
}

TEST_F(Endings, Kill9LeavesARunThatOpens) {
  auto target = start_target();
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    std::string path = run_file("killed");
    std::filesystem::remove(path + "-journal");
    Background recording(
        {assay(), "record", "-q", "-o", path, "--for", "60s", "--pid", pid_of(*target)});
    usleep(2'300'000 + static_cast<useconds_t>(round) * 130'000);
    recording.signal(SIGKILL);
    recording.wait();
    nlohmann::json run_report = report(path);
    EXPECT_GT(waits_in(path), 10);
    // What is in the file adds up: a thread that was blocked when the file was cut off does not
    // count as running. 30 % busy with 20 points of slack for a loaded machine.
    for (const auto& thread : run_report["threads"]) {
      double wall = thread["wall_ns"];
      double running = thread["user_ns"].get<double>() + thread["kernel_ns"].get<double>();
      EXPECT_LT(running, wall * 0.5) << thread.dump();
    }
  }
  EXPECT_EQ(kill(target->pid(), 0), 0) << "the target goes on";
}

TEST_F(Endings, AFullDiskIsSaidAndTheRunSoFarIsReadable) {
  std::string directory = run_file("full") + ".disk";
  std::filesystem::create_directories(directory);
  if (mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=300k") != 0) {
    GTEST_SKIP() << "skipped: cannot mount a small tmpfs";
  }
  Background target({program("pipe_pingpong"), "--for", "60", "--announce"});
  target.read_line();
  std::string path = directory + "/run.assay";
  Finished recording = run(
      {assay(), "record", "-q", "-o", path, "--for", "40s", "--pid", std::to_string(target.pid())},
      60);
  EXPECT_EQ(recording.exit_code, 1);
  EXPECT_NE(recording.err.find("full"), std::string::npos) << recording.err;
  Finished read = run({assay(), "report", path});
  EXPECT_EQ(read.exit_code, 0) << read.err;
  umount(directory.c_str());
}

TEST_F(Endings, ALaunchedCommandPassesItsExitStatusOn) {
  std::string path = run_file("exit");
  EXPECT_EQ(run({assay(), "record", "-q", "-o", path, "--", "sh", "-c", "exit 7"}).exit_code, 7);
  Finished missing =
      run({assay(), "record", "-q", "--overwrite", "-o", path, "--", "/no/such/program"});
  EXPECT_NE(missing.exit_code, 0);
  EXPECT_NE(missing.err.find("/no/such/program"), std::string::npos) << missing.err;
}

TEST_F(Endings, WrongUsageIsSaid) {
  EXPECT_EQ(run({assay(), "record", "--pid", "1", "--port", "80"}).exit_code, 2);
  EXPECT_EQ(run({assay(), "record"}).exit_code, 2);
  EXPECT_EQ(run({assay(), "record", "--for", "3 apples", "--pid", "1"}).exit_code, 2);
  Finished dead = run({assay(), "record", "-q", "-o", run_file("dead"), "--pid", "4194000"});
  EXPECT_EQ(dead.exit_code, 1);
  EXPECT_NE(dead.err.find("4194000"), std::string::npos) << dead.err;
}

TEST_F(Endings, AnExistingFileIsNotOverwrittenUnasked) {
  std::string path = run_file("twice");
  ASSERT_EQ(run({assay(), "record", "-q", "-o", path, "--", "true"}).exit_code, 0);
  Finished again = run({assay(), "record", "-q", "-o", path, "--", "true"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("--overwrite"), std::string::npos) << again.err;
  EXPECT_EQ(run({assay(), "record", "-q", "--overwrite", "-o", path, "--", "true"}).exit_code, 0);
}

TEST_F(Endings, ATargetThatEndsBeforeTheWindowIsAnError) {
  Background target({program("dying"), "--after-ms", "700"});
  std::string path = run_file("too_late");
  Finished recording = run({assay(), "record", "-q", "-o", path, "--warmup", "2s", "--for", "5s",
                            "--pid", std::to_string(target.pid())});
  EXPECT_EQ(recording.exit_code, 1);
  EXPECT_NE(recording.err.find(std::to_string(target.pid())), std::string::npos) << recording.err;
  EXPECT_FALSE(std::filesystem::exists(path)) << "nothing was captured";
}

TEST_F(Endings, AClosedPipeChangesNothing) {
  std::string path = run_file("pipe");
  std::string command =
      assay() + " record -o " + path + " -- sh -c 'exit 3' 2>&1 | true; exit ${PIPESTATUS[0]}";
  EXPECT_EQ(run({"bash", "-c", command}).exit_code, 3);
  EXPECT_EQ(run({assay(), "report", path}).exit_code, 0);
}

TEST_F(Endings, AReportIsNotWrittenOverItsRun) {
  std::string path = run_file("itself");
  ASSERT_EQ(run({assay(), "record", "-q", "-o", path, "--", "true"}).exit_code, 0);
  EXPECT_EQ(run({assay(), "report", path, "-o", path}).exit_code, 1);
  EXPECT_EQ(run({assay(), "report", path}).exit_code, 0) << "the run is still there";
}

TEST_F(Endings, ALaunchedCommandKeepsItsOwnLimits) {
  Finished alone = run({"sh", "-c", "ulimit -n"});
  Finished launched =
      run({assay(), "record", "-q", "-o", run_file("limits"), "--", "sh", "-c", "ulimit -n"});
  EXPECT_EQ(launched.out, alone.out);
}

}  // namespace
}  // namespace assay::kernel_test
