// Commands that make and read runs, from the first word to the last byte: import, report, rules,
// sql, diff.
#include <filesystem>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "cli/testing/command_line.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

class ImportCommand : public CommandLine {};
class ReportCommand : public CommandLine {};
class RulesCommand : public CommandLine {};
class SqlCommand : public CommandLine {};
class DiffCommand : public CommandLine {};

TEST_F(ImportCommand, SaysWhatItTookAndHowToReadIt) {
  std::string input = write("a.folded", "main;f 3\n"), output = path("a.assay");
  Said said = assay({"import", input, "-o", output});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, "");
  EXPECT_EQ(said.err, output + ": 3 samples, 0 waits   (assay report " + output + ")\n");
  Said again = assay({"import", input, "-o", output});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, AllOf(HasSubstr("exists already"), HasSubstr("--overwrite")));
  EXPECT_EQ(assay({"import", input, "-o", output, "--overwrite", "-q"}).err, "");
}

TEST_F(ImportCommand, OneIsNotPlural) {
  EXPECT_THAT(assay({"import", write("a.folded", "main;f 1\n"), "-o", path("a.assay")}).err,
              HasSubstr(": 1 sample, 0 waits"));
}

TEST_F(ImportCommand, WaitsAreWaitsWhenTheUserSaysSo) {
  Said said = assay({"import", write("off.folded", "main;poll 2000\n"), "-o", path("off.assay"),
                     "--as", "off", "--unit", "us"});
  EXPECT_THAT(said.err, HasSubstr(": 0 samples, 1 wait"));
  Said sum =
      assay({"sql", path("off.assay"), "SELECT sum(duration_ns) FROM waits", "--format", "tsv"});
  EXPECT_THAT(sum.out, HasSubstr("\n2000000\n")) << "2000 µs";
}

TEST_F(ImportCommand, WhatIsNoCaptureIsRefusedWithTheFormatsThereAre) {
  Said empty = assay({"import", write("x", ""), "-o", path("x.assay")});
  EXPECT_EQ(empty.code, 1);
  EXPECT_THAT(empty.err, HasSubstr("is empty: there is nothing to import"));
  Said noise = assay({"import", write("y", "\x01\x02\x03"), "-o", path("y.assay")});
  EXPECT_EQ(noise.code, 1);
  EXPECT_THAT(noise.err, AllOf(HasSubstr("no format"), HasSubstr("perf.data|pprof|folded")));
  EXPECT_FALSE(std::filesystem::exists(path("y.assay"))) << "no run is left behind";
}

TEST_F(ImportCommand, TheRunKnowsItsCommandLineAsAShellNeedsIt) {
  std::string input = write("it's.folded", "main;f 3\n"), output = path("q.assay");
  ASSERT_EQ(assay({"import", input, "-o", output, "-q"}).code, 0);
  Said said = assay(
      {"sql", output, "--format", "tsv", "SELECT value FROM info WHERE key = 'command_line'"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("assay import '"));
  EXPECT_THAT(said.out, HasSubstr("it'\\''s.folded'"));
}

TEST_F(ReportCommand, HasFourForms) {
  std::string run = usual_run();
  Said text = assay({"report", run});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("Verdict"), HasSubstr("75.0 %"), HasSubstr("parse")));
  EXPECT_THAT(text.out, Not(HasSubstr("\x1b["))) << "no colours where there is no terminal";
  Said markdown = assay({"report", run, "--format", "md"});
  EXPECT_THAT(markdown.out, AllOf(StartsWith("#"), HasSubstr("parse")));
  Said json = assay({"report", run, "--json"});
  EXPECT_EQ(json.out, assay({"report", run, "--format", "json"}).out);
  EXPECT_TRUE(Json::parse(json.out).contains("findings"));
  Said html = assay({"report", run, "--format", "html"});
  EXPECT_EQ(html.code, 0) << html.err;
  EXPECT_THAT(html.out.substr(0, 200), HasSubstr("<!doctype html>"));
}

TEST_F(ReportCommand, GoesIntoAFileButNotOverTheRun) {
  std::string run = usual_run(), before = read(run);
  Said said = assay({"report", run, "-o", path("report.txt")});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out, "");
  EXPECT_EQ(read(path("report.txt")), assay({"report", run}).out);
  Said refused = assay({"report", run, "-o", run});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("is the run itself"), HasSubstr("-o")));
  EXPECT_EQ(read(run), before);
  EXPECT_EQ(assay({"report", run, "-o", path("no/such/folder/x")}).code, 1);
}

TEST_F(ReportCommand, ASelectionThatMatchesNothingSaysHowToFindOne) {
  Said said = assay({"report", usual_run(), "--pid", "99999"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err,
              AllOf(HasSubstr("no thread that matches pid 99999"), HasSubstr("assay sql")));
}

TEST_F(ReportCommand, SuspectsAreJudged) {
  std::string run = usual_run();
  EXPECT_THAT(assay({"report", run, "--suspect", "^parse$"}).out, HasSubstr("parse"));
  Json json = Json::parse(assay({"report", run, "--json", "--suspect", "^parse$"}).out);
  EXPECT_EQ(json.at("suspects").size(), 1u);
  Said wrong = assay({"report", run, "--suspect", "(("});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("is not a regular expression"));
}

TEST_F(ReportCommand, ARuleFileThatIsWrongIsNamedAndTheReportGoesOn) {
  std::filesystem::create_directory(path("rules"));
  write("rules/mine.toml", "[[category]]\nid = 5\n");
  Said said = assay({"report", usual_run(), "--rules", path("rules")});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.err, AllOf(HasSubstr("mine.toml"), HasSubstr("this rule is left out")));
  EXPECT_THAT(said.out, HasSubstr("parse"));
}

TEST_F(RulesCommand, AreListedWithTheirFiles) {
  Said said = assay({"rules", "list"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, AllOf(HasSubstr("category  "), HasSubstr("detector  "),
                              HasSubstr("detectors/waiting.toml")));
  Said missing = assay({"rules", "list", "--rules", "/nonexistent"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("/nonexistent"));
}

TEST_F(RulesCommand, AreTestedOnARun) {
  Said said = assay({"rules", "test", usual_run()});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("vfs_read"), HasSubstr("rules matched"),
                              HasSubstr("No rule matches")));
}

TEST_F(RulesCommand, RulesOfOnesOwnAreTestedTooAndABadOneIsAnError) {
  std::filesystem::create_directory(path("mine"));
  write("mine/good.toml",
        "[[category]]\nid = \"parser\"\nname = \"our parser\"\nfunctions = [\"parse\"]\n");
  std::string run = usual_run();
  Said said = assay({"rules", "test", run, "--rules", path("mine")});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, ContainsRegex("parser +1 +75.0 % +0.0 % +parse\n"));
  EXPECT_THAT(assay({"rules", "test", run}).out, Not(HasSubstr("parser ")));
  EXPECT_THAT(assay({"rules", "list", "--rules", path("mine")}).out,
              ContainsRegex("category +subsystem/parser +[^\n]*good.toml\n"));
  write("mine/wrong.toml", "[[category]]\nid = 5\n");
  Said wrong = assay({"rules", "test", run, "--rules", path("mine")});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("wrong.toml"));
  EXPECT_THAT(wrong.out, HasSubstr("parser ")) << "the good ones are tested all the same";
}

TEST_F(SqlCommand, ATableIsAligned) {
  std::string query = "SELECT leaf, count(*) AS n FROM samples GROUP BY 1 ORDER BY 1";
  Said said = assay({"sql", usual_run(), query});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, "leaf      n\n────────  ──\nparse     30\nvfs_read  10\n");
}

TEST_F(SqlCommand, TsvAndJsonAreForPrograms) {
  std::string run = usual_run();
  std::string query = "SELECT 1 AS one, 0.5 AS half, NULL AS none, 'a' || char(10) AS line";
  EXPECT_EQ(assay({"sql", run, query, "--format", "tsv"}).out,
            "one\thalf\tnone\tline\n1\t0.5\t\ta\\x0a\n");
  EXPECT_EQ(assay({"sql", run, query, "--json"}).out,
            "{\"one\":1,\"half\":0.5,\"none\":null,\"line\":\"a\\n\"}\n");
  EXPECT_EQ(assay({"sql", run, "SELECT x'0102' AS blob", "--json"}).out,
            "{\"blob\":\"<2 bytes>\"}\n");
}

TEST_F(SqlCommand, LongCellsAreCutOnlyInTables) {
  std::string run = usual_run(), query = "SELECT printf('%.*c', 500, 'x') AS wide";
  EXPECT_LT(assay({"sql", run, query}).out.size(), 500u);
  EXPECT_THAT(assay({"sql", run, query, "--format", "tsv"}).out, HasSubstr(std::string(500, 'x')));
}

TEST_F(SqlCommand, ARunIsReadAndNeverChanged) {
  std::string run = usual_run(), before = read(run);
  for (const char* query : {"DELETE FROM thread", "ATTACH 'x' AS y", "PRAGMA journal_mode = wal"}) {
    Said said = assay({"sql", run, query});
    EXPECT_EQ(said.code, 1) << query;
    EXPECT_THAT(said.err, HasSubstr("assay: ")) << query;
  }
  EXPECT_EQ(read(run), before);
  EXPECT_EQ(assay({"sql", run, "SELECT nothing FROM nowhere"}).code, 1);
}

TEST_F(DiffCommand, HasItsFormsAndChoosesByName) {
  std::string base = usual_run("base.assay");
  std::string next = make_run("next.assay", "server;main;parse 10\nserver;main;sort 30\n",
                              {"--freq", "1000", "--as", "cpu"});
  Said text = assay({"diff", base, "--vs", next});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("With one run on a side"), HasSubstr("sort")));
  EXPECT_EQ(assay({"diff", base, "--vs", next, "-o", path("d.json")}).out, "");
  EXPECT_TRUE(Json::parse(read(path("d.json"))).contains("measures"));
  EXPECT_EQ(assay({"diff", base, "--vs", next, "-o", path("d.svg")}).code, 0);
  EXPECT_THAT(read(path("d.svg")), HasSubstr("<svg"));
  EXPECT_THAT(assay({"diff", base, "--vs", next, "--format", "html"}).out, HasSubstr("<html"));
  EXPECT_THAT(assay({"diff", base, "--vs", next, "--format", "md"}).out, HasSubstr("sort"));
}

TEST_F(DiffCommand, ALimitNeedsAMeasureThatTheRunsHave) {
  std::string base = usual_run("base.assay"), next = usual_run("next.assay");
  Said said = assay({"diff", base, "--vs", next, "--fail-on", "throughput<-3%"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, AllOf(HasSubstr("these runs have no measure throughput"),
                              HasSubstr("--format json lists them")));
}

// Status 3 needs both: a change that the runs show, and one beyond the limit.
TEST_F(DiffCommand, AShownChangeBeyondALimitIsStatusThree) {
  std::vector<std::string> words{"diff"}, next{"--vs"};
  for (int i = 0; i < 4; ++i) {
    std::string n = std::to_string(i);
    words.push_back(
        make_run("base" + n, "s;main;parse 30" + n + "\ns;main;read;vfs_read_[k] 100\n"));
    next.push_back(
        make_run("next" + n, "s;main;parse 10" + n + "\ns;main;read;vfs_read_[k] 300\n"));
  }
  words.insert(words.end(), next.begin(), next.end());
  auto judged = [&](const std::string& limit) {
    std::vector<std::string> more = words;
    more.insert(more.end(), {"--fail-on", limit});
    return assay(more);
  };
  Said fell = judged("category[application]_per_share<-3%");
  EXPECT_EQ(fell.code, 3) << fell.err;
  EXPECT_THAT(fell.err, ContainsRegex("changed by -6[0-9.]+ %, the limit is -3.0 %"));
  EXPECT_EQ(judged("category[application]_per_share<-90%").code, 0) << "not beyond it";
  EXPECT_EQ(judged("category[application]_per_share>+3%").code, 0) << "the other direction";
}

TEST_F(DiffCommand, ARunTwiceOnASideIsRefused) {
  std::string base = usual_run("base.assay"), next = usual_run("next.assay");
  Said said = assay({"diff", base, base, "--vs", next});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, HasSubstr("is given twice on one side"));
}

}  // namespace
}  // namespace assay::cli
