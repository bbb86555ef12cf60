// Commands that look at this machine and at what runs on it: record, heap, stat, sweep, ab and
// doctor, as far as they can be tried without rights and without a capture.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <stdlib.h>
#include <unistd.h>

#include "base/testing/environment.h"
#include "cli/testing/command_line.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

class CaptureCommand : public CommandLine {};
class StatCommand : public CommandLine {
 protected:
  // What `words` counted; nothing where events may not be opened.
  static std::optional<Said> counted(const std::vector<std::string>& words) {
    Said said = assay(words);
    bool refused = said.code == 1 && said.err.find("perf_event") != std::string::npos;
    return refused ? std::nullopt : std::optional(said);
  }
};
class DoctorCommand : public CommandLine {};
class AbCommand : public CommandLine {};

const char* const kNoCounting = "skipped: events may not be opened here";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The target is looked for before anything is written.
TEST_F(CaptureCommand, ATargetThatIsNotThereIsNamedAndNoFileIsMade) {
  With temporary("TMPDIR", path("").c_str());
  for (std::vector<std::string> words : {std::vector<std::string>{"record", "-o", path("x.assay")},
                                         {"heap", "-o", path("x.assay")},
                                         {"stat"},
                                         {"sweep", "--load", "http://127.0.0.1:1/"}}) {
    words.insert(words.end(), {"--name", "no-such-server"});
    Said said = assay(words);
    EXPECT_EQ(said.code, 1) << words[0];
    EXPECT_THAT(said.err,
                AllOf(HasSubstr("no process is named no-such-server"), HasSubstr("ps -e")))
        << words[0];
    EXPECT_EQ(said.out, "") << words[0];
    EXPECT_TRUE(std::filesystem::is_empty(path(""))) << words[0] << " leaves nothing behind";
  }
}

TEST_F(CaptureCommand, ARunThatExistsIsKept) {
  for (const char* command : {"record", "heap"}) {
    std::string run = write("kept.assay", "mine");
    Said said = assay({command, "--pid", std::to_string(::getpid()), "-o", run, "--for", "1ms"});
    EXPECT_EQ(said.code, 1) << command;
    EXPECT_THAT(said.err, AllOf(HasSubstr("exists already"), HasSubstr("--overwrite"))) << command;
    EXPECT_EQ(read(run), "mine") << command;
  }
}

TEST_F(CaptureCommand, ASweepThatCannotKeepItsRunsMeasuresNothing) {
  Said said = assay({"sweep", "--pid", std::to_string(::getpid()), "--load", "http://127.0.0.1:1/",
                     "-o", write("file", "") + "/runs"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, HasSubstr("cannot make " + path("file/runs")));
}

TEST_F(StatCommand, TheListHasEveryEventAndAReasonWhereItIsNotThere) {
  Said said = assay({"stat", "--list"});
  EXPECT_EQ(said.code, 0) << said.err;
  std::vector<std::string> lines = lines_of(said.out);
  for (const char* event : {"task-clock ", "context-switches ", "cycles ", "LLC-load-misses ",
                            "top-down analysis ", "system calls by name "}) {
    EXPECT_EQ(std::ranges::count_if(lines, [&](auto& line) { return line.starts_with(event); }), 1)
        << event;
  }
  for (const std::string& line : lines) {
    ASSERT_GT(line.size(), 27u) << line;
    EXPECT_THAT(line.substr(27), AnyOf(StartsWith("yes"), MatchesRegex("no[:,] .+"))) << line;
  }
}

TEST_F(StatCommand, ACommandIsCountedToItsEndAndItsStatusPassedOn) {
  auto said = counted({"stat", "--no-syscalls", "--", "/bin/sh", "-c", "echo out; exit 7"});
  if (!said) GTEST_SKIP() << kNoCounting;
  EXPECT_EQ(said->code, 7) << said->err;
  EXPECT_THAT(said->out, AllOf(HasSubstr("out\n"), HasSubstr("1 process, 1 thread, "),
                               HasSubstr(", until the target ended\n"), HasSubstr("task-clock")));
  EXPECT_THAT(said->out, Not(HasSubstr("System calls"))) << "they were not asked for";
}

TEST_F(StatCommand, JsonIsAloneOnItsStream) {
  auto said = counted({"stat", "--json", "--", "/bin/sh", "-c", "echo out"});
  if (!said) GTEST_SKIP() << kNoCounting;
  EXPECT_EQ(said->code, 0) << said->err;
  EXPECT_THAT(said->err, HasSubstr("out\n")) << "what the command prints goes to stderr";
  std::vector<std::string> lines = lines_of(said->out);
  ASSERT_EQ(lines.size(), 1u) << "an object a line";
  EXPECT_GT(Json::parse(lines[0]).at("seconds"), 0);
}

// Exit status, text and JSON are three forms of one answer.
TEST_F(DoctorCommand, SaysTheSameInEachForm) {
  Said text = assay({"doctor"}), json = assay({"doctor", "--json"});
  EXPECT_EQ(text.code, json.code);
  Json document = Json::parse(json.out);
  size_t missing = 0;
  for (const Json& check : document.at("checks")) {
    std::string name = check.at("name");
    EXPECT_THAT(text.out, HasSubstr(name));
    if (check.at("status") == "missing") ++missing;
    EXPECT_TRUE(check.at("status") == "ok" || check.at("cost") != "") << name;
  }
  EXPECT_EQ(document.at("ok"), missing == 0);
  EXPECT_EQ(json.code, missing == 0 ? 0 : 1);
  EXPECT_THAT(text.out, HasSubstr(std::to_string(missing) + " missing\n"));
}

TEST_F(DoctorCommand, ATargetIsLookedAtAsWell) {
  Said found = assay({"doctor", "--pid", std::to_string(::getpid())});
  EXPECT_EQ(found.code, 1);
  EXPECT_THAT(found.out, HasSubstr("is Assay itself"));
  Said none = assay({"doctor", "--name", "no-such-server"});
  EXPECT_EQ(none.code, 1) << "nothing can be captured of it";
  EXPECT_THAT(none.out, HasSubstr("no process is named no-such-server"));
}

TEST_F(AbCommand, TheFolderMustBePossible) {
  Said said =
      assay({"ab", "-o", write("file", "") + "/runs", "--", "/bin/true", "--", "/bin/true"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, HasSubstr("cannot make " + path("file/runs")));
}

}  // namespace
}  // namespace assay::cli
