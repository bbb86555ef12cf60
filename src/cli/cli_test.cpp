// The command line as a whole: help, version, unknown words, and what every command refuses, each
// with the words that help.
#include "cli/cli.h"

#include <gmock/gmock.h>

#include "cli/testing/command_line.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<std::string> kCommands{"record", "heap",  "report", "view",   "export",
                                         "import", "diff",  "ab",     "stat",   "load",
                                         "sweep",  "rules", "sql",    "doctor", "completions"};

TEST(Cli, HelpNamesEveryCommandAndItsExitStatus) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"--help"}, {"-h"}}) {
    Said said = assay(words);
    EXPECT_EQ(said.code, 0);
    EXPECT_EQ(said.err, "");
    for (const std::string& command : kCommands)
      EXPECT_THAT(said.out, HasSubstr("\n  " + command + " ")) << command;
    EXPECT_THAT(said.out, HasSubstr("Exit status: 0 done, 1 failed, 2 wrong usage"));
  }
}

TEST(Cli, EveryCommandHasHelpWithExamples) {
  for (const std::string& command : kCommands) {
    Said said = assay({command, "--help"});
    EXPECT_EQ(said.code, 0) << command;
    EXPECT_THAT(said.out, HasSubstr("Examples:")) << command;
    EXPECT_THAT(said.out, HasSubstr("assay " + command)) << command;
  }
}

TEST(Cli, TheVersionIsOneLine) {
  Said said = assay({"--version"});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out, "assay " ASSAY_VERSION "\n");
}

TEST(Cli, AnUnknownCommandIsToldTheNearest) {
  Said said = assay({"recrod", "--pid", "1"});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.err, "assay: there is no command recrod\n  try: assay record\n");
  EXPECT_THAT(assay({"frobnicate"}).err, HasSubstr("try: assay --help"));
  EXPECT_THAT(assay({std::string(500, 'x') + "\x1b[2J"}).err, ::testing::Not(HasSubstr("\x1b")))
      << "what a terminal would obey is not printed";
}

struct Refusal {
  std::vector<std::string> words;
  const char* what;
  const char* remedy;
};

void expect_refused(const std::vector<Refusal>& refusals) {
  for (const Refusal& one : refusals) {
    std::string line;
    for (const std::string& word : one.words) line += word + " ";
    Said said = assay(one.words);
    EXPECT_EQ(said.code, 2) << line;
    EXPECT_THAT(said.err, AllOf(StartsWith("assay: "), HasSubstr(one.what), HasSubstr(one.remedy)))
        << line;
    EXPECT_EQ(said.out, "") << line;
  }
}

const char* const kTargets = "try: --port 8000, --name NAME, --pid N";
const char* const kTime = "is not a duration: write for example 500ms";

TEST(Refused, CapturesWithoutATargetOrWithTwo) {
  for (const char* command : {"record", "heap", "stat"}) {
    expect_refused({{{command}, "no target given", kTargets},
                    {{command, "--pid", "1", "--port", "3"}, "more than one kind of target", ""},
                    {{command, "--pid", "1", "--", "./server"}, "more than one kind", ""},
                    {{command, "--pid", "abc"}, "'abc' is not a whole number", "--help"},
                    {{command, "--port", "70000"}, "not between 1 and 65535", "--help"},
                    {{command, "--pid", "1", "--for", "soon"}, kTime, ""},
                    {{command, "--pid", "1", "--frobnicate"}, "frobnicate", command}});
  }
}

TEST(Refused, Records) {
  expect_refused(
      {{{"record", "--pid", "1", "--for", "0"}, "--for 0 would record nothing", ""},
       {{"record", "--pid", "1", "--warmup", "x"}, kTime, ""},
       {{"record", "--pid", "1", "--ready", "http://x/"}, "--ready goes with --load", ""},
       {{"record", "--pid", "1", "--ready-timeout", "x"}, kTime, ""},
       {{"record", "--pid", "1", "--freq", "0"}, "0 is not between 1 and 100000", "record --help"},
       {{"record", "--pid", "1", "--backend", "x"}, "x not in {auto,bpf,perf}", "record --help"},
       {{"record", "--pid", "1", "--heap", "--heap-rate", "x"}, "'x' is no number of bytes", ""},
       {{"record", "--pid", "1", "--out-dir", "/dev/null/x"}, "cannot make /dev/null/x", ""}});
}

TEST(Refused, HeapsAndCounts) {
  expect_refused({{{"heap", "--pid", "1", "--for", "0"}, "--for 0 would sample nothing", ""},
                  {{"heap", "--pid", "1", "--rate", "x"}, "'x' is no number of bytes", "512k"},
                  {{"heap", "--pid", "1", "--snapshots", "x"}, kTime, ""},
                  {{"stat", "--pid", "1", "--for", "0s"}, "--for 0 would count nothing", ""},
                  {{"stat", "--pid", "1", "--interval", "x"}, kTime, ""},
                  {{"stat", "--pid", "1", "--ready", "http://x/"}, "--ready goes with --load", ""},
                  {{"doctor", "--pid", "1", "--port", "2"}, "more than one kind of target", ""}});
}

TEST(Refused, VariantsThatAreNotTwo) {
  const char* both = "assay ab --load URL -- CMD_A -- CMD_B";
  expect_refused(
      {{{"ab"}, "two variants are needed, each after a --", both},
       {{"ab", "--", "./a"}, "two variants are needed", both},
       {{"ab", "--a", "./a"}, "give both variants in the same way", both},
       {{"ab", "--a", "./a", "--b", "./b", "--", "./c"}, "in the same way", both},
       {{"ab", "--", "./a", "--"}, "a variant is empty", both},
       {{"ab", "--", "./a", "--", "./b", "--", "c"}, "more than two --", "--a 'CMD_A -- "},
       {{"ab", "--a", "'open", "--b", "./b"}, "quote", ""},
       {{"ab", "--ready-port", "80", "--", "./a", "--", "./b"}, "go with --load", ""},
       {{"ab", "--for", "0", "--", "./a", "--", "./b"}, "--for 0 would record nothing", ""},
       {{"ab", "--runs", "0", "--", "./a", "--", "./b"}, "0 is not between 1 and 1000", ""},
       {{"ab", "--fail-on", "cpu", "--", "./a", "--", "./b"},
        "not of the form",
        "cpu_per_request"}});
}

TEST(Refused, Sweeps) {
  expect_refused(
      {{{"sweep", "--pid", "1"}, "--load is required", "sweep --help"},
       {{"sweep", "--load", "http://x/"}, "no target given", kTargets},
       {{"sweep", "--pid", "1", "--load", "http://x/", "--for", "0"}, "would record nothing", ""},
       {{"sweep", "--pid", "1", "--load", "x", "--concurrency", "1,0"}, "0 is not between", ""},
       {{"sweep", "--pid", "1", "--load", "x", "--warmup", "x"}, kTime, ""}});
}

TEST(Refused, ReadersOfRunsWithWrongWords) {
  expect_refused(
      {{{"report"}, "run is required", "report --help"},
       {{"report", "x", "--format", "pdf"}, "pdf not in {text,md,json,html}", "report --help"},
       {{"report", "x", "--time", "1s..2s"},
        "about the whole window",
        "assay export, view and sql"},
       {{"diff", "x"}, "--vs is required", "diff --help"},
       {{"diff", "x", "--vs", "y", "--per", "mile"}, "mile not in {request", "diff --help"},
       {{"diff", "x", "--vs", "y", "--time", "1s..2s"}, "about the whole window", "--time"},
       {{"diff", "x", "--vs", "y", "--fail-on", "speed>+3%"}, "there is no measure speed", "docs/"},
       {{"view", "x", "--time", "1s"}, "'1s' is no range of time", "2s..5s"},
       {{"view", "x", "--port", "0"}, "0 is not between 1 and 65535", "view --help"},
       {{"sql", "x"}, "query is required", "sql --help"},
       {{"sql", "x", "SELECT 1", "--time", "x"}, "no range of time", "2s..5s"},
       {{"rules", "test"}, "rules test needs a run file", "assay rules test RUN"},
       {{"rules"},
        "list the rules, or test them on a run",
        "try: assay rules list, or assay rules"},
       {{"rules", "draw"}, "draw not in {test,list}", "rules --help"},
       {{"completions", "tcsh"}, "tcsh not in {bash,zsh,fish}", "completions --help"}});
}

TEST(Refused, ExportsAndImports) {
  expect_refused(
      {{{"export", "x"}, "no format given", "--format pprof|folded|svg"},
       {{"export", "x", "--format", "pdf"}, "'pdf' is no format", "--format pprof|folded|svg"},
       {{"export", "x", "--format", "svg", "--metric", "love"}, "'love' is no metric", "cpu|off"},
       {{"export", "x", "--format", "folded", "--split", "process"}, "needs a directory", "-o DIR"},
       {{"export", "x", "--format", "folded", "--base", "y"}, "for flame graphs", "--format svg"},
       {{"export", "x", "--format", "svg", "--time", "1s..2s", "--to", "3s"},
        "--from and --to",
        "use one or the other"},
       {{"import", "x"}, "--output is required", "import --help"},
       {{"import", "x", "-o", "y", "--unit", "days"}, "days not in {samples,ns,us,ms}", "--help"},
       {{"import", "x", "-o", "y", "--as", "on"}, "on not in {cpu,off}", "--help"},
       {{"import", "x", "-o", "y", "--freq", "0"}, "0", "--help"}});
}

TEST(Refused, LoadsThatCannotBeSent) {
  std::string url = "http://127.0.0.1:1/";
  expect_refused({{{"load"}, "url is required", "load --help"},
                  {{"load", "ftp://x/"}, "not a URL that load can go to", "http://"},
                  {{"load", url, "--", "x"}, "launches nothing", ""},
                  {{"load", url, "--data", "a", "--data-hex", "00"}, "choose one of --data", ""},
                  {{"load", url, "--data-hex", "abc"}, "odd number of digits", ""},
                  {{"load", url, "--data-hex", "zz"}, "'z' is no hex digit", ""},
                  {{"load", url, "--data", "@/nonexistent"}, "cannot read /nonexistent", ""},
                  {{"load", url, "--data-file", "/nonexistent"}, "cannot read /nonexistent", ""},
                  {{"load", url, "--timeout", "x"}, kTime, ""},
                  {{"load", url, "--requests", "0"}, "0 is not between 1", "load --help"}});
}

// Files that are not there are failures, not wrong usage.
TEST(Failed, FilesThatAreNotThereAreNamed) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"report", "/nonexistent.assay"},
        {"sql", "/nonexistent.assay", "SELECT 1"},
        {"export", "/nonexistent.assay", "--format", "svg"},
        {"diff", "/nonexistent.assay", "--vs", "/nonexistent.assay"},
        {"rules", "test", "/nonexistent.assay"},
        {"view", "/nonexistent.assay"},
        {"import", "/nonexistent.assay", "-o", "/nonexistent/x.assay"}}) {
    Said said = assay(words);
    EXPECT_EQ(said.code, 1) << words[0];
    EXPECT_THAT(said.err, HasSubstr("assay: ")) << words[0];
    EXPECT_THAT(said.err, HasSubstr("non")) << words[0];
  }
}

}  // namespace
}  // namespace assay::cli
