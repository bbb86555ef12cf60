#include "load/text_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::load {
namespace {

std::string render(std::string_view text, uint64_t seq = 7) {
  auto compiled = TextTemplate::compile(text);
  if (!compiled) return "error: " + compiled.error().what;
  std::mt19937_64 random(1);
  std::string out;
  compiled->render(seq, random, out);
  return out;
}

TEST(TextTemplate, PlainTextIsFixed) {
  auto compiled = TextTemplate::compile(R"({"a":{"b":1}})");
  ASSERT_TRUE(compiled);
  EXPECT_TRUE(compiled->fixed());
  EXPECT_EQ(compiled->fixed_text(), R"({"a":{"b":1}})");
  EXPECT_EQ(render("a {{ b"), "a {{ b");
}

TEST(TextTemplate, Places) {
  EXPECT_EQ(render("{{seq}}"), "7");
  EXPECT_EQ(render("k{{seq}}={{seq}};", 12), "k12=12;");
  EXPECT_EQ(render("{{random:5-5}}"), "5");
  EXPECT_THAT(render("{{random}}"), testing::MatchesRegex("[0-9]+"));
  EXPECT_THAT(render("<{{letters:12}}>"), testing::MatchesRegex("<[a-z]+>"));
  EXPECT_EQ(render("<{{letters:12}}>").size(), 14U);
  EXPECT_THAT(render("{{time}}"), testing::MatchesRegex("1[0-9]+"));
  EXPECT_THAT(render("{{uuid}}"), testing::MatchesRegex("[0-9a-f]+-[0-9a-f]+-4[0-9a-f]+-[89ab][0-"
                                                        "9a-f]+-[0-9a-f]+"));
  EXPECT_EQ(render("{{uuid}}").size(), 36U);
}

TEST(TextTemplate, RandomStaysInItsRange) {
  auto compiled = TextTemplate::compile("{{random:3-5}}");
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    std::string out;
    compiled->render(0, random, out);
    EXPECT_TRUE(out == "3" || out == "4" || out == "5") << out;
  }
}

TEST(TextTemplate, UnknownPlacesAreErrors) {
  for (const char* bad :
       {"{{name}}", "{{}}", "{{seq:1}}", "{{random:9-1}}", "{{random:a-b}}", "{{letters}}",
        "{{letters:}}", "{{letters:99999999999}}", "{{random:}}"}) {
    EXPECT_THAT(render(bad), testing::StartsWith("error:")) << bad;
  }
}

}  // namespace
}  // namespace assay::load
