#include "report/text/stack_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/json/json.h"
#include "report/markdown.h"
#include "report/sample_report.h"
#include "report/text/text.h"

namespace assay::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<analysis::FrameText> frames(const std::vector<std::string>& names) {
  std::vector<analysis::FrameText> out;
  for (const std::string& name : names) {
    analysis::FrameText frame;
    frame.function = name;
    frame.line = static_cast<uint32_t>(out.size());  // lines never matter
    out.push_back(frame);
  }
  return out;
}

// The lines in words, and that they stand for every frame.
std::vector<std::string> shown(const std::vector<std::string>& names) {
  auto all = frames(names);
  std::vector<std::string> out;
  size_t sum = 0;
  for (const StackLine& line : stack_lines(all)) {
    sum += line.frames;
    out.push_back(line.frame ? line.frame->function + times_text(line) : cycle_text(line));
  }
  EXPECT_EQ(sum, names.size());
  return out;
}

std::vector<std::string> repeated(const std::vector<std::string>& cycle, size_t times) {
  std::vector<std::string> out;
  for (size_t i = 0; i < times; ++i) out.insert(out.end(), cycle.begin(), cycle.end());
  return out;
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(StackLines, WhatDoesNotRepeatStays) {
  EXPECT_THAT(shown({}), ElementsAre());
  EXPECT_THAT(shown({"leaf", "f", "main"}), ElementsAre("leaf", "f", "main"));
  EXPECT_THAT(shown({"f", "f", "main"}), ElementsAre("f", "f", "main"));
  EXPECT_THAT(shown({"a", "b", "a", "b", "main"}), ElementsAre("a", "b", "a", "b", "main"));
}

TEST(StackLines, OneFunctionThatCallsItself) {
  EXPECT_THAT(shown(joined(joined({"leaf"}, repeated({"f"}, 1024)), {"main"})),
              ElementsAre("leaf", "f ×1,024", "main"));
}

TEST(StackLines, FunctionsThatCallEachOther) {
  // Caught in the middle of a turn: what is left of it stays.
  EXPECT_THAT(shown(joined(repeated({"b", "c", "a"}, 500), {"b", "main"})),
              ElementsAre("b", "c", "a", "… the 3 frames above ×500", "b", "main"));
}

TEST(StackLines, TheCycleThatHidesMostIsTaken) {
  EXPECT_THAT(shown(repeated({"f", "f", "f", "g"}, 100)),
              ElementsAre("f", "f", "f", "g", "… the 4 frames above ×100"));
  // Not as a cycle of ten, though it is one as well.
  EXPECT_THAT(shown(repeated({"f"}, 100)), ElementsAre("f ×100"));
}

TEST(StackLines, SeveralRecursionsInOneStack) {
  EXPECT_THAT(shown(joined(joined(repeated({"f"}, 5), {"between"}), repeated({"g", "h"}, 7))),
              ElementsAre("f ×5", "between", "g", "h", "… the 2 frames above ×7"));
}

TEST(StackLines, OtherCodeOfTheSameNameIsAnother) {
  auto all = frames({"f", "f", "f"});
  all[1].module = "libother.so";
  EXPECT_EQ(stack_lines(all).size(), 3u);
  all[1].module = "";
  all[1].inlined = true;
  EXPECT_EQ(stack_lines(all).size(), 3u);
}

// A run whose samples and waits are a thousand calls deep.
analysis::Report recursive_report() {
  analysis::FakeRun run;
  auto thread = run.add_thread(run.add_process(1, "/opt/server"), 1, "main");
  auto busy = joined(joined({"main"}, repeated({"visit"}, 1000)), {"leaf"});
  auto asleep = joined(joined({"main"}, repeated({"outer", "inner"}, 300)), {"k:ep_poll"});
  for (int i = 0; i < 30; ++i) {
    run.add_sample(thread, run.stack(busy), i * kNsPerMs, kNsPerMs);
  }
  run.add_wait(thread, run.stack(asleep), 100 * kNsPerMs, 500 * kNsPerMs);
  return analysed(run);
}

TEST(StackLines, ReportsShowRecursionOnceAndWhatItIsCalledFrom) {
  analysis::Report report = recursive_report();
  std::string text = render_text(report, {});
  EXPECT_THAT(text, HasSubstr("visit ×1,000"));
  EXPECT_THAT(text, HasSubstr("… the 2 frames above ×300"));
  EXPECT_THAT(text, Not(HasSubstr("frames …")));
  std::string markdown = render_markdown(report);
  EXPECT_THAT(markdown, HasSubstr("visit ×1,000"));
  EXPECT_THAT(markdown, HasSubstr("… the 2 frames above ×300"));
}

TEST(StackLines, TheDataKeepsEveryFrame) {
  auto report = nlohmann::json::parse(render_json(recursive_report()));
  EXPECT_EQ(report["hot_paths"][0]["frames"].size(), 1002u);
}

}  // namespace
}  // namespace assay::report
