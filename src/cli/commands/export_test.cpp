// assay export: which format, of what, and where to.
#include <filesystem>

#include <gmock/gmock.h>

#include "cli/testing/command_line.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ExportCommand : public CommandLine {};

TEST_F(ExportCommand, FoldedStacksComeBackAsTheyWere) {
  Said said = assay({"export", usual_run(), "--format", "folded", "--by", "none"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("server;main;parse 30000000\n"),
                              HasSubstr("server;main;read;vfs_read 10000000\n")))
      << "1000 Hz: a millisecond each";
}

TEST_F(ExportCommand, TheFormatFollowsTheFilesName) {
  std::string run = usual_run();
  EXPECT_EQ(assay({"export", run, "-o", path("cpu.svg")}).code, 0);
  EXPECT_THAT(read(path("cpu.svg")), HasSubstr("<svg"));
  EXPECT_EQ(assay({"export", run, "-o", path("cpu.pb.gz")}).code, 0);
  EXPECT_EQ(read(path("cpu.pb.gz")).substr(0, 2), "\x1f\x8b") << "gzip";
  EXPECT_EQ(assay({"export", run, "-o", path("cpu.folded")}).code, 0);
  EXPECT_THAT(read(path("cpu.folded")), HasSubstr("parse 30000000"));
}

TEST_F(ExportCommand, FocusIgnoreAndInvertedChangeTheStacks) {
  std::string run = usual_run();
  auto folded = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"export", run, "--format", "folded", "--by", "none"};
    words.insert(words.end(), more.begin(), more.end());
    return assay(words).out;
  };
  EXPECT_THAT(folded({"--focus", "^parse$"}), AllOf(HasSubstr("parse"), Not(HasSubstr("read"))));
  EXPECT_THAT(folded({"--ignore", "^parse$"}), AllOf(HasSubstr("read"), Not(HasSubstr("parse"))));
  EXPECT_THAT(folded({"--inverted"}), HasSubstr("parse;main;server 30000000"));
  EXPECT_THAT(folded({"--metric", "samples"}), HasSubstr("parse 30\n"));
}

TEST_F(ExportCommand, WhatTheRunDoesNotHoldIsSaid) {
  Said said = assay({"export", usual_run(), "--format", "folded", "--metric", "off"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, AllOf(HasSubstr("says nothing of time off the CPU"), HasSubstr("try: ")));
  EXPECT_EQ(assay({"export", usual_run(), "--format", "folded", "--metric", "inuse_space"}).code,
            1);
}

TEST_F(ExportCommand, OneFileForEachProcess) {
  Said said =
      assay({"export", usual_run(), "--format", "folded", "--split", "process", "-o", path("out")});
  EXPECT_EQ(said.code, 0) << said.err;
  ASSERT_THAT(said.out, HasSubstr(".folded\n"));
  std::string first = said.out.substr(0, said.out.find('\n'));
  EXPECT_TRUE(std::filesystem::exists(first)) << "the names are printed";
  EXPECT_THAT(read(first), HasSubstr("parse"));
  Said refused = assay(
      {"export", usual_run(), "--format", "folded", "--split", "process", "-o", "/dev/null/out"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("cannot make /dev/null/out"));
}

TEST_F(ExportCommand, ADifferenceIsAFlameGraphOfTwoRuns) {
  std::string base = usual_run("base.assay"), next = usual_run("next.assay");
  EXPECT_EQ(assay({"export", next, "--base", base, "-o", path("diff.svg")}).code, 0);
  EXPECT_THAT(read(path("diff.svg")), HasSubstr("<svg"));
  EXPECT_EQ(assay({"export", next, "--base", "/nonexistent", "-o", path("d.svg")}).code, 1);
}

TEST_F(ExportCommand, TheRunIsNotOverwritten) {
  std::string run = usual_run(), before = read(run);
  Said said = assay({"export", run, "--format", "svg", "-o", run});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.err, HasSubstr("is the run itself"));
  EXPECT_EQ(read(run), before);
}

// Another tool's file in the place of a run: what a run would keep as notes is printed.
TEST_F(ExportCommand, ACaptureIsExportedAtOnceWithItsNotes) {
  std::string input = write("a.folded", "main;f 3\n");
  Said said = assay({"export", input, "--format", "folded", "--by", "none"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("main;f 3\n"));
  EXPECT_THAT(said.err, AllOf(HasSubstr("does not say how long one is"), HasSubstr("--freq HZ")));
  Said told = assay({"export", input, "--format", "folded", "--freq", "1000", "--as", "cpu"});
  EXPECT_EQ(told.err, "") << "all that the file does not say was said";
  EXPECT_EQ(assay({"export", write("empty", ""), "--format", "folded"}).code, 1);
}

}  // namespace
}  // namespace assay::cli
