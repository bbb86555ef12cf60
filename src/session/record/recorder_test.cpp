// record() where it cannot begin, and its choice of events. What it records is tests/kernel's.
#include "session/record/recorder.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/environment.h"
#include "base/testing/temporary_directory.h"
#include "session/record/cache_dir.h"
#include "session/record/event_choice.h"

namespace assay::session {
namespace {

using ::testing::HasSubstr;

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() { options_.output = dir_ / "run.assay"; }
  Error refusal() {
    auto outcome = record(options_, stop_, [](const RecordProgress&) {});
    EXPECT_FALSE(outcome);
    return outcome ? Error{} : outcome.error();
  }
  TemporaryDirectory dir_;
  RecordOptions options_;
  std::atomic<bool> stop_{false};
};

TEST_F(RecorderTest, AFileThatIsThereIsNotOverwrittenAndNothingIsLaunched) {
  std::ofstream(options_.output) << "precious";
  options_.target.command = {"/bin/sh", "-c", "echo ran > '" + (dir_ / "ran") + "'"};
  refusal();
  EXPECT_FALSE(std::filesystem::exists(dir_ / "ran"));
  EXPECT_EQ(std::filesystem::file_size(options_.output), 8u);
}

TEST_F(RecorderTest, ATargetThatIsNotThereLeavesNoFile) {
  options_.target.pids = {0x7ffffff0};
  EXPECT_THAT(refusal().what, HasSubstr("2147483632"));
  EXPECT_FALSE(std::filesystem::exists(options_.output));
}

TEST_F(RecorderTest, LoadThatMakesNoSenseIsToldBeforeAnythingIsLaunched) {
  options_.target.command = {"/bin/sh", "-c", "echo ran > '" + (dir_ / "ran") + "'"};
  options_.load.what = "http://127.0.0.1:0/";
  refusal();
  EXPECT_FALSE(std::filesystem::exists(dir_ / "ran"));
}

TEST_F(RecorderTest, AServerThatNeverAnswersIsEnded) {
  std::string pid_file = dir_ / "pid";
  options_.target.command = {"/bin/sh", "-c", "echo $$ > '" + pid_file + "'; exec sleep 600"};
  options_.load.what = "sleep 600";
  options_.load.ready_port = 9;  // discard: taken to be free
  options_.load.ready_timeout_ns = 300 * kNsPerMs;
  EXPECT_THAT(refusal().what, HasSubstr("not ready within"));
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_NE(::kill(pid, 0), 0) << "it was the capture's to end";
  EXPECT_FALSE(std::filesystem::exists(options_.output));
}

class EventChoiceTest : public ::testing::Test {
 protected:
  static std::vector<pid_t> self() { return {static_cast<pid_t>(getpid())}; }
  RecordOptions options_;
  os::Capabilities machine_ = os::read_capabilities();
};

TEST_F(EventChoiceTest, WhatWasInsistedOnIsNotReplaced) {
  options_.backend = Backend::bpf;
  options_.per_task = true;
  auto choice = choose_events(options_, machine_, self);
  ASSERT_FALSE(choice);
  EXPECT_THAT(choice.error().what, HasSubstr("other was asked for"));
}

TEST_F(EventChoiceTest, PerfEventsSayWhyTheyAreUsedAndWhatTheKernelAllows) {
  options_.unprivileged = true;  // BPF is out of the question then
  options_.frequency_hz = 1'000'000;
  machine_.max_sample_rate = 50;
  auto choice = choose_events(options_, machine_, self);
  if (!choice) GTEST_SKIP() << "skipped: " << choice.error().what;
  EXPECT_EQ(choice->bpf, nullptr);
  EXPECT_EQ(choice->events->tier(), capture::Tier::user_only);
  std::vector<std::string> topics;
  for (const model::QualityNote& note : choice->notes) topics.push_back(note.topic);
  EXPECT_THAT(topics, ::testing::Contains("backend"));
  EXPECT_THAT(topics, ::testing::Contains("frequency"));
  EXPECT_EQ(choice->events->sample_period_ns(), kNsPerSecond / 50);
}

TEST(CacheDir, IsTheUsersCacheAndNeverARelativePath) {
  With cache("XDG_CACHE_HOME", "/var/cache/me"), home("HOME", "/home/me");
  EXPECT_EQ(default_cache_dir(), "/var/cache/me/assay");
  With relative("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(default_cache_dir(), "/home/me/.cache/assay");
  With homeless("HOME", "");
  EXPECT_EQ(default_cache_dir(), "") << "no cache is better than one in any directory";
}

}  // namespace
}  // namespace assay::session
