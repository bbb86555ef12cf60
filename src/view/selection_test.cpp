#include "view/selection.h"

#include <gtest/gtest.h>

#include "analysis/testing/fake_run.h"

namespace assay::view {
namespace {

std::unique_ptr<RunIndex> two_threads() {
  auto run = std::make_unique<analysis::FakeRun>();
  auto process = run->add_process(10, "/opt/server");
  auto one = run->add_thread(process, 11, "one");
  run->add_thread(process, 12, "two");
  run->add_sample(one, run->stack({"main", "parse", "copy"}), 1000, 10);
  run->add_sample(one, run->stack({"main", "copy"}), 2000, 10);
  return *RunIndex::make(std::move(run), "fake.assay");
}

TEST(Select, CutsTheRangeToTheWindow) {
  auto run = two_threads();
  auto all = select(*run, {});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->end_ns - all->begin_ns, run->window_ns());
  auto far = select(*run, {{"from", "5"}, {"to", "99999999999999"}});
  ASSERT_TRUE(far);
  EXPECT_EQ(far->begin_ns, run->begin_ns() + 5);
  EXPECT_EQ(far->end_ns, run->end_ns());
}

TEST(Select, RefusesWhatTheRunDoesNotHave) {
  auto run = two_threads();
  EXPECT_FALSE(select(*run, {{"from", "9"}, {"to", "3"}}));
  EXPECT_FALSE(select(*run, {{"from", "-1"}}));
  EXPECT_FALSE(select(*run, {{"from", "x"}}));
  EXPECT_FALSE(select(*run, {{"threads", "0,2"}}));
  EXPECT_FALSE(select(*run, {{"threads", "0,,1"}}));
  EXPECT_FALSE(select(*run, {{"functions", "999"}}));
}

TEST(Select, NodesBelowAChosenFunction) {
  auto run = two_threads();
  uint32_t parse = UINT32_MAX;
  for (uint32_t i = 0; i < run->tree().functions().size(); ++i) {
    if (run->tree().functions()[i].name == "parse") parse = i;
  }
  ASSERT_NE(parse, UINT32_MAX);
  auto chosen = select(*run, {{"functions", std::to_string(parse)}});
  ASSERT_TRUE(chosen);
  int inside = 0;
  for (NodeIndex node = 1; node < run->node_count(); ++node) inside += chosen->has_node(node);
  EXPECT_EQ(inside, 2);  // parse, and copy below it; not main, not the other copy
}

// What the command line names and what the page numbers is the same part of the run.
TEST(Select, NamesAndNumbersMeanTheSame) {
  auto run = two_threads();
  for (const Parameters& named : {Parameters{{"tid", "12"}}, Parameters{{"pool", "two"}},
                                  Parameters{{"thread", "^tw"}}, Parameters{{"thread", "12"}}}) {
    auto selected = select(*run, named);
    ASSERT_TRUE(selected);
    EXPECT_EQ(selected->threads, (std::vector<bool>{false, true})) << named.begin()->first;
  }
  EXPECT_TRUE(select(*run, {{"pid", "10"}})->has_thread({1}));
  EXPECT_FALSE(select(*run, {{"pid", "11"}}));
  EXPECT_FALSE(select(*run, {{"threads", ""}})->has_thread({0}));
  auto parse = select(*run, {{"focus", "^parse$"}});
  ASSERT_TRUE(parse);
  int inside = 0;
  for (NodeIndex node = 1; node < run->node_count(); ++node) inside += parse->has_node(node);
  EXPECT_EQ(inside, 2);
}

TEST(PageFragment, HasTheNumbersOfThreadsAndTheTime) {
  auto run = two_threads();
  run::Selection asked;
  EXPECT_EQ(*page_fragment(run->contents(), asked), "");
  asked.pools = {"two"};
  asked.from_ns = 5;
  EXPECT_EQ(*page_fragment(run->contents(), asked), "#from=5&to=1000000000&threads=1");
  asked.pools = {"three"};
  EXPECT_FALSE(page_fragment(run->contents(), asked));
}

}  // namespace
}  // namespace assay::view
