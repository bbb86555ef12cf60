#include "formats/svg/layout.h"

#include <map>

#include "formats/export/export_fixture.h"

namespace assay::formats {
namespace {

std::map<std::string, FlameBox> by_name(const FlameTree& tree, const FlameLayout& layout) {
  std::map<std::string, FlameBox> boxes;
  for (const FlameBox& box : layout.boxes) {
    boxes[tree.label_of(tree.nodes()[box.node]).name] = box;
  }
  return boxes;
}

FlameTree tree_of(analysis::FakeRun& run, analysis::FakeRun* base, bool inverted = false) {
  FlameTree tree("all", {Metric::samples, Grouping::none, inverted});
  for (analysis::FakeRun* each : {&run, base}) {
    if (each == nullptr) continue;
    auto selected = SelectedRun::make(*each, {});
    tree.add(**selected, *sum_up(**selected), each == base);
  }
  tree.finish();
  return tree;
}

void fill(analysis::FakeRun& run, const std::vector<std::pair<std::string, int>>& leaves) {
  auto thread = run.add_thread(run.add_process(1, "/opt/x"), 1, "x");
  for (const auto& [leaf, count] : leaves) {
    run.add_samples(thread, run.stack({"main", leaf}), count, 1);
  }
}

TEST(FlameLayout, FramesAreAsWideAsTheirShareWidestFirst) {
  analysis::FakeRun run;
  fill(run, {{"small", 25}, {"large", 75}});
  FlameTree tree = tree_of(run, nullptr);
  auto boxes = by_name(tree, lay_out(tree, false, 0, 1000));
  EXPECT_DOUBLE_EQ(boxes["main"].width, 1);
  EXPECT_DOUBLE_EQ(boxes["large"].width, 0.75);
  EXPECT_DOUBLE_EQ(boxes["large"].start, 0);
  EXPECT_DOUBLE_EQ(boxes["small"].start, 0.75);
  EXPECT_EQ(boxes["small"].depth, 2u);
}

TEST(FlameLayout, VanishedFramesStayVisibleInADifferentialGraph) {
  analysis::FakeRun now, before;
  fill(now, {{"stays", 50}, {"new", 50}});
  fill(before, {{"stays", 100}, {"gone", 100}});
  FlameTree tree = tree_of(now, &before);
  auto boxes = by_name(tree, lay_out(tree, true, 0, 1000));
  // Each had half of its run: the union is three halves wide.
  for (const char* name : {"stays", "new", "gone"}) {
    EXPECT_NEAR(boxes[name].width, 1.0 / 3, 1e-9) << name;
  }
}

TEST(FlameLayout, NarrowFramesAreCountedNotDrawn) {
  analysis::FakeRun run;
  fill(run, {{"large", 999}, {"tiny", 1}});
  FlameTree tree = tree_of(run, nullptr);
  FlameLayout layout = lay_out(tree, false, 0.01, 1000);
  EXPECT_EQ(layout.left_out, 1u);
  EXPECT_EQ(lay_out(tree, false, 0, 2).boxes.size(), 3u) << "ties with the narrowest stay";
}

TEST(FlameTree, InvertedTreesBeginWithLeaves) {
  analysis::FakeRun run;
  fill(run, {{"a", 30}, {"b", 70}});
  FlameTree tree = tree_of(run, nullptr, true);
  auto boxes = by_name(tree, lay_out(tree, false, 0, 1000));
  EXPECT_EQ(boxes["b"].depth, 1u);
  EXPECT_DOUBLE_EQ(boxes["b"].width, 0.7);
  EXPECT_EQ(boxes["main"].depth, 2u);
}

}  // namespace
}  // namespace assay::formats
