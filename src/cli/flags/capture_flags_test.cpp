#include "cli/flags/capture_flags.h"

#include <gmock/gmock.h>

#include "cli/flags/import_flags.h"
#include "cli/testing/command_line.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CaptureFlagsTest : public CommandLine {
 protected:
  CaptureFlagsTest() {
    flags_.add_target(parser_);
    flags_.add_output(parser_);
    flags_.add_rest(parser_);
  }
  session::CaptureOptions filled(std::vector<std::string> words,
                                 const Invocation& invocation = {}) {
    std::ranges::reverse(words);  // as the parser wants them
    parser_.parse(words);
    session::CaptureOptions options;
    auto done = flags_.fill(invocation, options);
    EXPECT_TRUE(done) << done.error().text();
    return options;
  }
  CLI::App parser_;
  CaptureFlags flags_;
};

TEST_F(CaptureFlagsTest, WithoutFlagsTheUsualHolds) {
  auto options = filled({"--port", "8000"}, {{}, "assay record --port 8000"});
  EXPECT_EQ(options.target.port, 8000);
  EXPECT_EQ(options.target_text, "--port 8000");
  EXPECT_EQ(options.command_line, "assay record --port 8000");
  EXPECT_THAT(options.output, StartsWith("port-8000-"));
  EXPECT_FALSE(options.overwrite);
  EXPECT_TRUE(options.source);
  EXPECT_FALSE(options.debuginfod) << "nothing is fetched from a network unless it is asked for";
  EXPECT_FALSE(options.target.output_to_stderr);
  EXPECT_FALSE(flags_.quiet());
  EXPECT_FALSE(flags_.names_output());
}

TEST_F(CaptureFlagsTest, EachFlagIsTaken) {
  auto options =
      filled({"-o", "x.assay", "--overwrite", "--no-source", "--debuginfod", "-q", "--json"},
             {{"./server", "-v"}, ""});
  EXPECT_EQ(options.output, "x.assay");
  EXPECT_TRUE(options.overwrite);
  EXPECT_FALSE(options.source);
  EXPECT_TRUE(options.debuginfod);
  EXPECT_TRUE(options.target.output_to_stderr) << "what the command prints must not mix with JSON";
  EXPECT_EQ(options.target_text, "-- ./server -v");
  EXPECT_TRUE(flags_.quiet());
  EXPECT_TRUE(flags_.names_output());
}

TEST_F(CaptureFlagsTest, TheReportAtTheEndIsOfTheRunThatWasWritten) {
  std::string run = usual_run();
  ::testing::internal::CaptureStdout();
  auto report = flags_.conclude(run);
  std::string shown = ::testing::internal::GetCapturedStdout();
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_THAT(shown, HasSubstr("parse"));
  EXPECT_EQ(shown, whole_report(*report, false));
  filled({"--pid", "1", "-q"});
  ::testing::internal::CaptureStdout();
  EXPECT_TRUE(flags_.conclude(run));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_FALSE(flags_.conclude(path("nothing.assay")));
}

TEST_F(CaptureFlagsTest, TheLastLinesSayWhereTheRunIs) {
  ::testing::internal::CaptureStderr();
  flags_.show_end("x.assay", {});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "run file: x.assay   (assay report x.assay)\n");
}

TEST(ImportFlagsFill, MeaningFrequencyAndNames) {
  auto filled = [](std::vector<std::string> words) {
    CLI::App parser;
    ImportFlags flags;
    flags.add_to(parser);
    std::ranges::reverse(words);
    parser.parse(words);
    session::ImportOptions options;
    flags.fill(options);
    return options;
  };
  auto plain = filled({});
  EXPECT_TRUE(plain.symbolize);
  EXPECT_EQ(plain.read.meaning, formats::Meaning::unsaid);
  EXPECT_FALSE(filled({"--no-names"}).symbolize);
  EXPECT_EQ(filled({"--as", "off"}).read.meaning, formats::Meaning::off);
  EXPECT_EQ(filled({"--as", "cpu"}).read.meaning, formats::Meaning::cpu);
  EXPECT_EQ(filled({"--freq", "99"}).read.period_ns, 10'101'010);
  EXPECT_EQ(filled({"--unit", "ms"}).read.unit_ns, 1'000'000);
  EXPECT_THROW(filled({"--freq", "0"}), CLI::ParseError);
}

}  // namespace
}  // namespace assay::cli
