#include "analysis/rules/rule_set.h"

#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/rules/name_pattern.h"

namespace assay::analysis {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(BareName, DropsWhatIsNotTheName) {
  EXPECT_EQ(bare_name("malloc"), "malloc");
  EXPECT_EQ(bare_name("ns::f(int, char*)"), "ns::f");
  EXPECT_EQ(bare_name("void ns::f<int>(char)"), "ns::f<int>");
  EXPECT_EQ(bare_name("ns::f(int) [clone .cold]"), "ns::f");
  EXPECT_EQ(bare_name("f.constprop.0"), "f");
  EXPECT_EQ(bare_name("main.partition"), "main.partition");
  EXPECT_EQ(bare_name("memcpy@@GLIBC_2.14"), "memcpy");
  EXPECT_EQ(bare_name("operator new(unsigned long)"), "operator new");
  EXPECT_EQ(bare_name("a::(anonymous namespace)::g(int)"), "a::(anonymous namespace)::g");
  EXPECT_EQ(bare_name("std::function<void (int)>::operator()(int) const"),
            "std::function<void (int)>::operator()");
  EXPECT_EQ(bare_name("std::vector<std::pair<int, char> >::push_back(std::pair<int, char>&&)"),
            "std::vector<std::pair<int, char> >::push_back");
  EXPECT_EQ(bare_name("(weird"), "(weird");
  EXPECT_EQ(bare_name(""), "");
}

TEST(NamePattern, StarsStandForAnything) {
  EXPECT_TRUE(NamePattern("malloc").matches("malloc"));
  EXPECT_FALSE(NamePattern("malloc").matches("malloc_x"));
  EXPECT_TRUE(NamePattern("tcp_*").matches("tcp_sendmsg"));
  EXPECT_FALSE(NamePattern("tcp_*").matches("xtcp_sendmsg"));
  EXPECT_TRUE(NamePattern("*::lock").matches("a::b::lock"));
  EXPECT_TRUE(NamePattern("std::vector*::push_back").matches("std::vector<int>::push_back"));
  EXPECT_FALSE(NamePattern("ab*ba").matches("aba"));  // the two ends must not share a character
  EXPECT_TRUE(NamePattern("*").matches(""));
  EXPECT_TRUE(NamePattern("a*b*c").matches("axxbyyc"));
  EXPECT_FALSE(NamePattern("a*b*c").matches("axxcyyb"));
}

TEST(Rules, TheBuiltInOnesAreWithoutErrors) {
  const RuleSet& rules = default_rules();
  for (const RuleError& error : rules.errors) ADD_FAILURE() << error.text();
  EXPECT_GE(rules.detectors.size(), 60u);
  EXPECT_GE(rules.categories.size(), 60u);
  EXPECT_GE(rules.idle.size(), 30u);
}

TEST(Rules, TheBuiltInOnesAreTheFilesOfTheTree) {
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOURCE_ROOT) / "rules")) {
    files += entry.path().extension() == ".toml";
  }
  EXPECT_EQ(built_in_rules().size(), files);
}

TEST(Rules, ErrorsNameFileLineAndRuleAndTheRestStillWorks) {
  RuleSet set;
  read_rules({"mine.toml", R"([[category]]
id = "good"
name = "Good"
functions = ["f"]

[[category]]
id = "bad"
name = "Bad"
functions = "not a list"

[[idle]]
id = "kind"
name = "Kind"
functions = ["g"]
waits = ["coffee"]

[[detector]]
id = "typo"
title = "T"
cause = "on-CPU"
measure = "cpu"
becuase = "x"
because = "x"
recommendation = "y"
functions = ["h"]

[[detector]]
id = "unknown-metric"
title = "T"
cause = "host"
measure = "metric"
because = "x"
recommendation = "y"
when = [{ metric = "happiness", above = 1 }]
)"},
             set);
  ASSERT_EQ(set.categories.size(), 1u);
  EXPECT_EQ(set.categories[0].id, "good");
  EXPECT_EQ(set.categories[0].origin.line, 1u);
  std::string all;
  for (const RuleError& error : set.errors) all += error.text() + "\n";
  EXPECT_THAT(all, HasSubstr("mine.toml:9: rule bad: functions must be a list of texts"));
  EXPECT_THAT(all,
              HasSubstr("mine.toml:15: rule kind: waits: there is no kind of wait named coffee"));
  EXPECT_THAT(all, HasSubstr("mine.toml:22: rule typo: there is no key named becuase"));
  EXPECT_THAT(all, HasSubstr("there is no metric named happiness"));
  EXPECT_THAT(all, HasSubstr("rule unknown-metric"));
  EXPECT_TRUE(set.idle.empty());
  EXPECT_TRUE(set.detectors.empty());
}

TEST(Rules, AFileThatIsNoTomlIsNamedWithItsLine) {
  RuleSet set;
  read_rules({"broken.toml", "[[category]]\nid = \"x\"\nname = = \n"}, set);
  ASSERT_EQ(set.errors.size(), 1u);
  EXPECT_THAT(set.errors[0].text(), HasSubstr("broken.toml:3: "));
}

TEST(Rules, HostileFilesAreErrorsNotCrashes) {
  for (std::string text :
       {std::string("\0\xff\xfe[[[[", 7), std::string(100'000, '['), std::string("category = 3\n"),
        std::string("[[category]]\n"), std::string("idle = [1, 2]\n"),
        std::string("[[detector]]\nid = 5\nwhen = 3\nfact = 1\n"), std::string("surprise = 1\n")}) {
    RuleSet set;
    read_rules({"x.toml", text}, set);
    EXPECT_FALSE(set.errors.empty()) << text.substr(0, 20);
  }
}

class RuleDirectory : public testing::Test {
 protected:
  RuleDirectory() { fs::create_directories(path_); }
  ~RuleDirectory() override { fs::remove_all(path_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name) << text;
  }
  fs::path path_ = fs::temp_directory_path() / ("assay-rules-" + std::to_string(::getpid()));
};

TEST_F(RuleDirectory, UsersRulesComeFirstAndReplaceBuiltInOnes) {
  write("mine.toml",
        "[[category]]\nid = \"malloc\"\nname = \"My malloc\"\nfunctions = [\"my_malloc\"]\n");
  RuleSet set = load_rules({path_.string()});
  EXPECT_TRUE(set.errors.empty());
  EXPECT_EQ(set.categories[0].name, "My malloc");
  int malloc = 0;
  for (const CategoryRule& rule : set.categories)
    malloc += rule.breakdown == "subsystem" && rule.id == "malloc";
  EXPECT_EQ(malloc, 1);
}

TEST_F(RuleDirectory, ABrokenFileLeavesTheBuiltInRulesAlone) {
  write("broken.toml", "nonsense");
  RuleSet set = load_rules({path_.string(), "/does/not/exist"});
  EXPECT_EQ(set.errors.size(), 2u);
  EXPECT_EQ(set.detectors.size(), default_rules().detectors.size());
}

}  // namespace
}  // namespace assay::analysis
