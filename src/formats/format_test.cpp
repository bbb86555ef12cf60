#include "formats/format.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include <gmock/gmock.h>

#include "formats/export/export_fixture.h"

namespace assay::formats {
namespace {

using ::testing::HasSubstr;

std::vector<std::string_view> names_of(const Formats& formats) {
  std::vector<std::string_view> names;
  for (const FormatSpec* format : formats) names.push_back(format->name);
  return names;
}

TEST(Formats, TheTableHasEveryFolder) {
  EXPECT_THAT(
      names_of(written_formats()),
      ::testing::IsSupersetOf({"pprof", "folded", "svg", "speedscope", "firefox", "perf-script",
                               "collapsed-by-second", "csv", "tsv", "gperftools-heap"}));
  EXPECT_THAT(names_of(read_formats()),
              ::testing::IsSupersetOf({"perf.data", "pprof", "folded", "speedscope", "perf-script",
                                       "gperftools-cpu", "gperftools-heap"}));
  EXPECT_TRUE(std::ranges::is_sorted(all_formats(), {}, &FormatSpec::place));
}

TEST(Formats, EveryOneIsDescribedWhole) {
  std::set<std::string_view> names, suffixes;
  std::set<int> places;
  for (const FormatSpec* format : all_formats()) {
    SCOPED_TRACE(format->name);
    EXPECT_TRUE(names.insert(format->name).second);
    EXPECT_TRUE(places.insert(format->place).second);
    EXPECT_TRUE(format->read != nullptr || format->write != nullptr);
    EXPECT_EQ(format->read != nullptr, format->detect != nullptr);
    EXPECT_NE(format->metrics, 0u);
    EXPECT_EQ(find_format(format->name), format);
    if (format->write == nullptr) continue;
    EXPECT_FALSE(format->title.empty());
    EXPECT_FALSE(format->help.empty());
    ASSERT_TRUE(format->suffixes[0].starts_with('.'));
    EXPECT_TRUE(suffixes.insert(format->suffixes[0]).second);
    EXPECT_EQ(format_of_file(fmt::format("run{}", format->suffixes[0])), format);
    bool some_times = (format->metrics & kTimeMetrics) != kTimeMetrics && format->holds_time();
    EXPECT_EQ(some_times, !format->refusal.empty()) << "a refusal says what it does hold";
  }
  EXPECT_EQ(find_format("nonsense"), nullptr);
  EXPECT_EQ(format_of_file("run.nonsense"), nullptr);
  EXPECT_EQ(format_of_file("run.json"), find_format("speedscope"));
  EXPECT_EQ(format_of_file("run.firefox.json"), find_format("firefox"));
}

// docs/export.md and docs/import.md have a word on each.
TEST(Formats, EveryOneIsInTheDocuments) {
  auto text_of = [](const char* path) {
    std::ifstream in(path);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  std::string exports = text_of(SOURCE_ROOT "/docs/export.md");
  for (const FormatSpec* format : written_formats()) {
    EXPECT_THAT(exports, HasSubstr(fmt::format("`{}`", format->name)));
    EXPECT_THAT(exports, HasSubstr(std::string(format->suffixes[0])));
  }
  std::string imports = text_of(SOURCE_ROOT "/docs/import.md");
  for (const FormatSpec* format : read_formats())
    EXPECT_THAT(imports, HasSubstr(std::string(format->name)));
}

// What is written is recognised by the same table, whatever it is called.
TEST(Formats, WhatIsWrittenIsDetected) {
  analysis::FakeRun run;
  fill_server(run);
  for (const FormatSpec* format : written_formats()) {
    if (format->read == nullptr || !format->holds_time()) continue;
    Input input = Input::of_bytes("out", exported(run, format));
    auto head = input.head();
    ASSERT_TRUE(head);
    EXPECT_EQ(detect_format(*head), format) << format->name;
  }
  EXPECT_EQ(detect_format("no format at all"), nullptr);
  EXPECT_EQ(detect_format(""), nullptr);
}

TEST(Formats, ListsOfThem) {
  Formats three{find_format("pprof"), find_format("csv"), find_format("svg")};
  EXPECT_EQ(format_list(three), "pprof, csv or svg");
  EXPECT_EQ(format_list(three, " and "), "pprof, csv and svg");
  EXPECT_EQ(format_list(three, " or ", 8), "pprof,\ncsv or svg");
  EXPECT_EQ(format_list({three[0]}), "pprof");
  EXPECT_EQ(format_list({}), "");
  EXPECT_EQ(format_choice(three), "pprof|csv|svg");
}

TEST(Formats, AnExportWithoutAFormatIsRefused) {
  analysis::FakeRun run;
  fill_server(run);
  run::ScratchDirectory scratch;
  ExportOptions options;
  for (const FormatSpec* format :
       {static_cast<const FormatSpec*>(nullptr), find_format("perf.data")}) {
    options.format = format;
    auto done = export_run(run, options, scratch.file("out"));
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().remedy, HasSubstr("pprof|folded"));
  }
}

}  // namespace
}  // namespace assay::formats
