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

TEST(ParseQuery, SplitsAndUnescapes) {
  auto query = parse_query("a=1&b=x%20y+z&c&=q&d=%3D%26");
  ASSERT_TRUE(query);
  EXPECT_EQ(query->at("a"), "1");
  EXPECT_EQ(query->at("b"), "x y z");
  EXPECT_EQ(query->at("c"), "");
  EXPECT_EQ(query->at("d"), "=&");
  EXPECT_EQ(query->size(), 4u);
}

TEST(ParseQuery, RefusesBrokenEscapes) {
  EXPECT_FALSE(parse_query("a=%"));
  EXPECT_FALSE(parse_query("a=%4"));
  EXPECT_FALSE(parse_query("a=%zz"));
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

}  // namespace
}  // namespace assay::view
