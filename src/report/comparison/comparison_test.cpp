#include "report/comparison/comparison.h"

#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "report/comparison/comparison_html.h"

namespace assay::report {
namespace {

using analysis::Comparison;
using analysis::Measure;
using analysis::Outcome;
using ::testing::HasSubstr;
using ::testing::Not;

Measure measured(double base, double next, Outcome outcome) {
  Measure m;
  m.base = base;
  m.next = next;
  m.ratio = next / base;
  m.low = m.ratio * 0.98;
  m.high = m.ratio * 1.02;
  m.outcome = outcome;
  return m;
}

Comparison with_heap() {
  Comparison comparison;
  comparison.per = analysis::Per::request;
  comparison.sentence = "A sentence.";
  comparison.base.runs.resize(2);
  comparison.next.runs.resize(2);
  comparison.has_heap = true;
  comparison.heap_sites_tested = 12;
  analysis::HeapChange change;
  change.function = "ns::parse<a|b>(int)";
  change.module = "server";
  change.file = "/src/server/parse.cpp";
  change.line = 12;
  change.allocated = measured(2048, 4096, Outcome::higher);
  change.objects = measured(3, 6, Outcome::higher);
  change.live = measured(1e6, 1e6, Outcome::undecided);
  comparison.heap_changes.push_back(change);
  return comparison;
}

TEST(ComparisonText, CategoriesKeepWhatTellsThemApart) {
  Comparison comparison;
  for (const char* name : {"TLS and cryptography", "TLS and cryptography (libraries)"}) {
    Measure m = measured(1, 1, Outcome::undecided);
    m.group = analysis::MeasureGroup::category_group;
    m.name = name;
    comparison.measures.push_back(m);
  }
  comparison.base.runs.resize(2);
  comparison.next.runs.resize(2);
  EXPECT_THAT(render_comparison_text(comparison, {}), HasSubstr("(libraries)"));
}

TEST(ComparisonText, LongSentencesAreWrapped) {
  Comparison comparison;
  comparison.base.runs.resize(2);
  comparison.next.runs.resize(2);
  for (int i = 0; i < 40; ++i) comparison.sentence += "word ";
  std::istringstream lines(render_comparison_text(comparison, {.colour = false, .width = 100}));
  std::string first, second;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_LE(first.size(), 100U);
  EXPECT_THAT(second, ::testing::StartsWith("word"));
}

TEST(ComparisonHtml, MoreThroughputIsNotColouredAsDearer) {
  Comparison comparison;
  comparison.base.runs.resize(2);
  comparison.next.runs.resize(2);
  Measure throughput = measured(100, 150, Outcome::higher);
  throughput.id = "throughput";
  comparison.measures = {throughput};
  std::string page = render_comparison_html(comparison, "<svg/>");
  EXPECT_THAT(page, HasSubstr("class='n lower'"));
  EXPECT_THAT(page, Not(HasSubstr("class='n higher'")));
}

TEST(ComparisonHeap, IsInEveryFormat) {
  Comparison comparison = with_heap();
  std::string text = render_comparison_text(comparison, {});
  EXPECT_THAT(text, HasSubstr("parse.cpp:12"));
  EXPECT_THAT(text, HasSubstr("+100.0 %"));
  EXPECT_THAT(text, HasSubstr("12 sites tested"));
  EXPECT_THAT(text, Not(HasSubstr("      live"))) << "what did not change is not told";

  std::string markdown = render_comparison_markdown(comparison);
  EXPECT_THAT(markdown, HasSubstr("| parse.cpp:12 | objects | 3/request | 6/request | +100.0 % |"));

  auto json = nlohmann::json::parse(render_comparison_json(comparison));
  EXPECT_EQ(json.at("heap_sites_tested"), 12);
  const auto& change = json.at("heap_changes").at(0);
  EXPECT_EQ(change.at("allocated").at("new"), 4096);
  EXPECT_EQ(change.at("objects").at("unit"), "objects per request");
  EXPECT_EQ(change.at("live").at("finding"), "undecided");
  EXPECT_EQ(change.at("line"), 12);

  EXPECT_THAT(render_comparison_html(comparison, "<svg/>"), HasSubstr("ns::parse&lt;a|b&gt;(int)"));
}

TEST(ComparisonHeap, IsNotSpokenOfWhereThereIsNone) {
  Comparison comparison = with_heap();
  comparison.has_heap = false;
  comparison.heap_changes.clear();
  EXPECT_THAT(render_comparison_text(comparison, {}), Not(HasSubstr("Heap")));
  EXPECT_FALSE(nlohmann::json::parse(render_comparison_json(comparison)).contains("heap_changes"));
}

}  // namespace
}  // namespace assay::report
