#include "report/text/text.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/markdown.h"
#include "report/printable.h"
#include "report/sample_report.h"

namespace assay::report {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

void expect_fits(const std::string& text, int width) {
  for (const std::string& line : lines(text)) EXPECT_LE(display_width(line), width) << line;
}

// Compares with testdata/NAME. ASSAY_UPDATE_GOLDEN=1 writes it instead, to be read before
// committing.
void expect_golden(const std::string& name, const std::string& text) {
  auto path = std::filesystem::path(SOURCE_ROOT) / "src/report/testdata" / name;
  if (std::getenv("ASSAY_UPDATE_GOLDEN")) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream in(path);
  ASSERT_TRUE(in) << path;
  std::stringstream golden;
  golden << in.rdbuf();
  EXPECT_EQ(text, golden.str()) << "set ASSAY_UPDATE_GOLDEN=1 to accept";
}

TEST(Text, Golden) {
  std::string text = render_text(analysed(sample_run()), {});
  expect_golden("report.txt", text);
  expect_fits(text, 100);
}

TEST(Markdown, Golden) {
  expect_golden("report.md", render_markdown(analysed(sample_run())));
}

TEST(Text, TheSameRunGivesTheSameBytes) {
  EXPECT_EQ(render_text(analysed(sample_run()), {}), render_text(analysed(sample_run()), {}));
}

TEST(Text, ColourOnlyWhenAskedAndItChangesNothingElse) {
  analysis::Report report = analysed(sample_run());
  std::string plain = render_text(report, {}), coloured = render_text(report, {true, 100});
  EXPECT_EQ(plain.find('\x1b'), plain.npos);
  EXPECT_NE(coloured.find('\x1b'), coloured.npos);
  std::string stripped;
  for (size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b') {
      i = coloured.find('m', i);
    } else {
      stripped += coloured[i];
    }
  }
  EXPECT_EQ(stripped, plain);
}

TEST(Text, FitsOtherWidths) {
  for (int width : {80, 100, 132, 200}) {
    expect_fits(render_text(analysed(sample_run()), {false, width}), width);
    expect_fits(render_text(analysed(hostile_run()), {false, width}), width);
  }
}

TEST(Text, EmptyRun) {
  analysis::FakeRun run;
  run.edit() = {};
  std::string text = render_text(analysed(run), {});
  EXPECT_THAT(text, HasSubstr("the run has no threads"));
  EXPECT_THAT(text, HasSubstr("no samples"));
  EXPECT_THAT(text, HasSubstr("the capture was killed"));
  EXPECT_THAT(render_markdown(analysed(run)), HasSubstr("No samples"));
}

TEST(Text, AnImportedHeapSaysWhatItDoesNotKnow) {
  std::string text = render_text(analysed(imported_heap_run()), {});
  EXPECT_THAT(text, HasSubstr("window    not known\n"));
  EXPECT_THAT(text, HasSubstr("captured  1 process; import: pprof\n"));
  EXPECT_THAT(text, HasSubstr("live when the profile was taken: 3.00 MB in 30 objects"));
  EXPECT_THAT(text, HasSubstr("allocated, freed or not: 12.0 MB in 120 objects"));
  EXPECT_THAT(text, HasSubstr("growth, lifetimes and leaks are not known"));
  EXPECT_THAT(text, HasSubstr("100 %  pass"));
  for (const char* of_time : {"Thread time", "Verdict", "Suspected leaks", "/s", "on-CPU"})
    EXPECT_THAT(text, Not(HasSubstr(of_time)));
  std::string live_alone = render_text(analysed(imported_heap_run(false)), {});
  EXPECT_THAT(live_alone, HasSubstr("freed before is not in the profile"));
  EXPECT_THAT(live_alone, Not(HasSubstr("Allocations by call site")));
  std::string markdown = render_markdown(analysed(imported_heap_run(false)));
  EXPECT_THAT(markdown, HasSubstr("#### Live heap by call site"));
  EXPECT_THAT(markdown, Not(HasSubstr("Allocations by call site")));
}

TEST(Text, RunWithoutSamples) {
  analysis::FakeRun run;
  auto thread = run.add_thread(run.add_process(1, "/opt/server"), 1, "main");
  run.add_wait(thread, run.stack({"main", "k:ep_poll"}), 0, 400 * kNsPerMs);
  std::string text = render_text(analysed(run), {});
  EXPECT_THAT(text, HasSubstr("no samples were taken, though threads ran"));
  EXPECT_THAT(text, HasSubstr("idle (poll)"));
}

TEST(Text, HostileNamesStayText) {
  std::string text = render_text(analysed(hostile_run()), {});
  for (char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  EXPECT_EQ(text.find("\xe2\x80\xae"), text.npos);
  EXPECT_EQ(printable(text.substr(0, text.find('\n'))), text.substr(0, text.find('\n')));
  expect_fits(text, 100);
  EXPECT_LT(text.size(), 20'000u);
}

TEST(Markdown, HostileNamesStayText) {
  std::string text = render_markdown(analysed(hostile_run()));
  EXPECT_THAT(text, Not(HasSubstr("<script")));
  EXPECT_THAT(text, Not(HasSubstr("@all")));
  EXPECT_THAT(text, Not(HasSubstr("`rm`")));
  for (char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  EXPECT_LT(text.size(), 60'000u);
}

TEST(Text, ManyProcessesAndPoolsAreSummed) {
  analysis::FakeRun run;
  for (int p = 0; p < 200; ++p) {
    auto process = run.add_process(1000 + p, "/opt/server", "worker");
    for (int t = 0; t < 12; ++t) {
      auto thread = run.add_thread(process, 1000 * p + t, "pool" + std::to_string(t));
      run.add_wait(thread, {}, 0, kNsPerSecond);
    }
  }
  std::string text = render_text(analysed(run), {});
  EXPECT_THAT(text, HasSubstr("… 192 more processes"));
  EXPECT_THAT(text, HasSubstr("… 4 more pools"));
  EXPECT_LT(lines(text).size(), 150u);
}

analysis::Report loaded(const std::string& what, const std::string& figures) {
  analysis::Report report = analysed(sample_run());
  report.workload = {};
  report.workload.present = true;
  report.workload.what = what;
  report.workload.figures = figures;
  return report;
}

std::string load_lines(const analysis::Report& report, int width) {
  std::string text = render_text(report, {false, width});
  expect_fits(text, width);
  size_t begin = text.find("load      ");
  return begin == text.npos ? "" : text.substr(begin, text.find("captured  ") - begin);
}

TEST(Text, TheFiguresOfTheLoadAreNeverCut) {
  const std::string figures =
      "closed loop, 64 connections: 12345 requests/s, p50 77 µs, p99 3.2 ms, no errors";
  EXPECT_EQ(load_lines(loaded("http://h/", figures), 100),
            "load      http://h/; " + figures + "\n");
  std::string url = "http://127.0.0.1:8080/" + std::string(300, 'a') + "/last";
  std::string long_url = load_lines(loaded(url, figures), 100);
  EXPECT_THAT(lines(long_url),
              testing::ElementsAre(testing::AllOf(testing::StartsWith("load      http://127.0.0.1"),
                                                  HasSubstr("…"), testing::EndsWith("/last")),
                                   "          " + figures));
  std::string options =
      "http://127.0.0.1:8080/v1/chat/completions -H '" + std::string(90, 'k') + "'";
  EXPECT_THAT(load_lines(loaded(options, figures), 80),
              testing::StartsWith("load      http://127.0.0.1:8080/v1/chat/completions -H 'k"));
  std::string narrow = load_lines(loaded(url, figures), 80);
  for (const char* figure : {"64 connections:", "12345 requests/s,", "77 µs,", "3.2 ms,"})
    EXPECT_THAT(narrow, HasSubstr(figure));
  EXPECT_THAT(render_markdown(loaded(url, figures)), HasSubstr("; " + figures + "\n"));
}

TEST(Text, ALoadIsSaidWithWhatItHas) {
  EXPECT_EQ(load_lines(loaded("wrk -t 2 http://h/", ""), 100), "load      wrk -t 2 http://h/\n");
  EXPECT_EQ(load_lines(loaded("http://h/ \\\n  -c 4\n", ""), 100), "load      http://h/ \\ -c 4\n");
  EXPECT_EQ(load_lines(loaded("", "did not cover the capture"), 100),
            "load      did not cover the capture\n");
  EXPECT_EQ(load_lines(analysed(sample_run()), 100), "");
  EXPECT_THAT(render_markdown(analysed(sample_run())), Not(HasSubstr("- load:")));
}

TEST(Text, CountsThatAreNoTimeAreNotCalledTime) {
  analysis::Report report = analysed(imported_counts_run());
  for (const std::string& text : {render_text(report, {}), render_markdown(report)}) {
    EXPECT_THAT(text, HasSubstr("32 goroutine in 1 samples"));
    EXPECT_THAT(text, HasSubstr("counts goroutine, not time"));
    for (const char* of_time : {"CPU time", "hread time", "Findings", "32.0 ns", "32 ns"})
      EXPECT_THAT(text, Not(HasSubstr(of_time)));
  }
}

}  // namespace
}  // namespace assay::report
