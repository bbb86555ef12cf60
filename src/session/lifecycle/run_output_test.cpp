#include "session/lifecycle/run_output.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/testing/temporary_directory.h"
#include "run/reader.h"

namespace assay::session {
namespace {

class RunOutputTest : public ::testing::Test {
 protected:
  RunOutputTest() {
    options_.output = dir_ / "run.assay";
    options_.target_text = "--port 8000";
    options_.command_line = "assay record --port 8000";
  }
  TemporaryDirectory dir_;
  CaptureOptions options_;
  RunOutput output_{options_};
};

TEST_F(RunOutputTest, TheFileSaysHowItWasTakenAndWhyItEnded) {
  ASSERT_TRUE(output_.open("bpf"));
  output_.set_on_cpu_event("cycles", 10'000'000);
  output_.begin_window(5000);
  output_.sink().add_note({"topic", "text", ""});
  ASSERT_TRUE(output_.keep_committing([] { return TimeNs{6000}; }));
  output_.end_window(9000);
  EXPECT_FALSE(output_.finish(EndReason::target_exited));
  auto reader = run::Reader::open(options_.output);
  ASSERT_TRUE(reader) << reader.error().what;
  const model::RunInfo& info = (*reader)->contents().info;
  EXPECT_EQ(info.backend, "bpf");
  EXPECT_EQ(info.target, "--port 8000");
  EXPECT_EQ(info.command_line, "assay record --port 8000");
  EXPECT_EQ(info.oncpu_event, "cycles");
  EXPECT_EQ(info.window_begin_ns, 5000);
  EXPECT_EQ(info.window_end_ns, 9000);
  EXPECT_EQ(info.end_reason, "target exited");
  EXPECT_TRUE(info.finished);
  ASSERT_EQ((*reader)->contents().notes.size(), 1u);
  EXPECT_EQ((*reader)->contents().notes[0].topic, "topic");
}

TEST_F(RunOutputTest, TheWallClockBelongsToTheWindowsBegin) {
  TimeNs begin = monotonic_ns() - 3 * kNsPerSecond;  // as of a command that was launched before
  output_.begin_window(begin);
  ASSERT_TRUE(output_.open("heap"));
  EXPECT_EQ(output_.info().window_begin_ns, begin) << "open() does not move it";
  // Both clocks are read within the same moment; a second is generous for a busy machine.
  EXPECT_NEAR(static_cast<double>(utc_ns() - output_.info().utc_begin_ns), 3e9, 1e9);
}

TEST_F(RunOutputTest, WhatIsThereIsNotOverwrittenUnasked) {
  std::ofstream(options_.output) << "precious";
  EXPECT_FALSE(output_.check());
  EXPECT_FALSE(output_.open("bpf"));
  options_.overwrite = true;
  EXPECT_TRUE(output_.check());
}

TEST_F(RunOutputTest, ADirectoryThatIsNotThereIsToldBeforeAnythingIsBegun) {
  options_.output = dir_ / "no/such/run.assay";
  EXPECT_FALSE(output_.check());
  EXPECT_FALSE(output_.is_open());
}

TEST_F(RunOutputTest, AnAbandonedRunLeavesNoFile) {
  ASSERT_TRUE(output_.open("bpf"));
  ASSERT_TRUE(output_.keep_committing([] { return TimeNs{1}; }));
  EXPECT_TRUE(std::filesystem::exists(options_.output));
  output_.abandon();
  EXPECT_FALSE(std::filesystem::exists(options_.output));
  EXPECT_FALSE(output_.error());
}

}  // namespace
}  // namespace assay::session
