// The descriptor tables fit one another, and rule files are checked against them.
#include <set>

#include <gmock/gmock.h>

#include "analysis/heap/heap_findings.h"
#include "analysis/rules/rule_set.h"
#include "analysis/testing/fake_server.h"

namespace assay::analysis {
namespace {

using ::testing::HasSubstr;

TEST(Tables, AVerdictIsFoundByItsId) {
  std::set<std::string_view> ids;
  for (const VerdictKindRow& row : verdict_kinds()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_EQ(verdict_kind_of(row.id), row.kind);
    EXPECT_FALSE(row.stem.empty()) << row.id;
  }
  EXPECT_EQ(verdict_kind_of("coffee"), std::nullopt);
}

TEST(Tables, AWaitHasANumberAndItsOwnPlaceOnThePage) {
  std::set<int> places;
  for (const BlockKindRow& row : block_kinds()) {
    EXPECT_TRUE(find_vital(row.vital)) << row.id;
    EXPECT_TRUE(places.insert(row.page_order).second) << row.id;
    EXPECT_LT(row.page_order, kBlockKindCount) << row.id;
    EXPECT_EQ(row.light.size(), 7u) << row.id;
    EXPECT_EQ(row.dark.size(), 7u) << row.id;
    EXPECT_FALSE(row.group.empty()) << row.id;
  }
}

TEST(Tables, WaitsLeadToTheVerdictsAboutWaiting) {
  std::set<VerdictKind> led_to;
  for (const BlockKindRow& row : block_kinds()) {
    if (row.verdict) led_to.insert(*row.verdict);
  }
  for (const VerdictKindRow& row : verdict_kinds()) {
    EXPECT_EQ(led_to.contains(row.kind), row.limit == Limit::waiting) << row.id;
  }
}

TEST(Tables, PartsOfBusyTimeAddUpToOne) {
  FakeServer server;
  std::vector<Step> cycle{runs(kCompute, 3), queues(1), waits(kTakeWork, 1)};
  for (const auto& stack :
       {kTakeLock, kWriteDisk, kAskBackend, kSendBlocked, kSleep,
        below_loop({"handle", "k:do_wait"}), below_loop({"handle", "k:pipe_read"}),
        below_loop({"handle", "k:n_tty_read"})}) {
    cycle.push_back(waits(stack, 1));
  }
  server.thread("worker", "worker", cycle);
  Vitals vitals = server.report().vitals;
  double sum = vitals.running.value() + vitals.runqueue.value();
  std::set<std::string_view> counted;
  for (const BlockKindRow& row : block_kinds()) {
    if (counted.insert(row.vital).second) sum += find_vital(row.vital)->of(vitals).value();
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_NEAR(vitals.other_waits.value(), 2 / 12.0, 0.01) << "child and terminal";
}

TEST(Tables, AVitalSaysItsValueAndHasOneName) {
  std::set<std::string_view> ids;
  for (const VitalRow& row : vital_rows()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    bool says = row.sentence.find("{}") != row.sentence.npos;
    EXPECT_EQ(says, row.unit != VitalUnit::flag) << row.id;
    EXPECT_EQ(find_vital(row.id), &row);
  }
}

TEST(Tables, EveryUsualSuspectHasACategory) {
  std::set<UsualSuspect> named;
  for (const CategoryRule& rule : default_rules().categories) {
    if (rule.suspect) named.insert(*rule.suspect);
  }
  for (const UsualSuspectRow& row : kUsualSuspects) EXPECT_TRUE(named.contains(row.kind)) << row.id;
}

TEST(Tables, NoRuleHasTheIdOfAFindingOfTheHeap) {
  for (const DetectorRule& rule : default_rules().detectors) {
    EXPECT_NE(rule.id, kHeapLeak);
    EXPECT_NE(rule.id, kHeapGrowth);
    EXPECT_NE(rule.id, kHeapChurn);
  }
}

TEST(Tables, ARuleThatNamesWhatIsInNoTableIsAnError) {
  struct Case {
    const char* kind;
    const char* line;
    const char* error;
  };
  for (const Case& wrong :
       {Case{"category", "role = 'cook'", "there is no role named cook"},
        Case{"category", "suspect = 'butler'", "there is no suspect named butler"},
        Case{"detector", "cause = 'magic'", "there is no cause named magic"},
        Case{"detector", "cause = 'host'\nshape = 'round'", "there is no shape named round"},
        Case{"detector", "cause = 'host'\nexplains = 'rain'", "there is no verdict named rain"}}) {
    RuleSet set;
    std::string text =
        std::string("[[") + wrong.kind + "]]\nid = 'x'\n" + wrong.line + "\nfunctions = ['f']\n" +
        (wrong.kind == std::string_view("category")
             ? "name = 'X'\n"
             : "title = 'X'\nmeasure = 'cpu'\nbecause = 'b'\nrecommendation = 'r'\n");
    read_rules({"mine.toml", text}, set);
    ASSERT_EQ(set.errors.size(), 1u) << wrong.line;
    EXPECT_THAT(set.errors[0].text(), HasSubstr(wrong.error));
    EXPECT_TRUE(set.categories.empty() && set.detectors.empty()) << wrong.line;
  }
}

}  // namespace
}  // namespace assay::analysis
