#include "analysis/rules/goes_along.h"

#include <gtest/gtest.h>

#include "analysis/testing/fake_run.h"

namespace assay::analysis {
namespace {

// The weights of stacks, root first, each with its CPU time.
struct Profile {
  FakeRun run;
  std::vector<std::pair<model::StackId, int64_t>> stacks;
  void add(const std::vector<std::string>& stack, int64_t ns) {
    stacks.emplace_back(run.stack(stack), ns);
  }
  std::vector<PathWeight> weights(const CallTree& tree) const {
    std::vector<PathWeight> all;
    for (const auto& [stack, ns] : stacks) all.push_back({tree.path_of(stack), ns, 1, stack});
    return all;
  }
};

TEST(GoesAlong, CpuTimeInsideTheCallThatWaits) {
  Profile profile;
  profile.add({"main", "log", "fsync"}, 30);
  profile.add({"main", "log", "fsync", "ext4_sync_file"}, 40);
  profile.add({"main", "log"}, 5);
  profile.add({"main", "other", "fsync"}, 100);
  auto waits = profile.run.stack({"main", "log", "fsync"});
  CallTree tree(profile.run.contents());
  EXPECT_EQ(cpu_inside(tree, profile.weights(tree), {call_of(tree, tree.path_of(waits))}), 70);
  EXPECT_EQ(cpu_inside(tree, profile.weights(tree), {}), 0);
  EXPECT_EQ(call_of(tree, 0), 0u);
}

TEST(GoesAlong, OwnInstructionsWhereTheyAreTheSmallerPart) {
  Profile profile;
  profile.add({"main", "check"}, 20);
  profile.add({"main", "check", "clock"}, 80);
  profile.add({"main"}, 500);
  CallTree tree(profile.run.contents());
  auto weights = profile.weights(tree);
  FunctionIndex check = tree.paths()[weights[0].path].function,
                main = tree.paths()[weights[2].path].function;
  EXPECT_EQ(own_cpu_of(tree, weights, {{check, 80}}), 20);
  EXPECT_EQ(own_cpu_of(tree, weights, {{main, 100}}), 0) << "it does much else";
}

}  // namespace
}  // namespace assay::analysis
