#include "evidence/stacks/stack_policy.h"

#include <gtest/gtest.h>

namespace assay::evidence {
namespace {

class FakeSwitchStacks final : public SwitchStacks {
 public:
  uint32_t copy_bytes() const override { return bytes; }
  bool user_chain() const override { return chain; }
  void set(uint32_t copy, bool with_chain) override {
    bytes = copy;
    chain = with_chain;
    ++changes;
  }
  bool can_be_bare() const override { return bare; }
  void record_kernel_part(bool on) override { kernel_part = on; }

  uint32_t bytes = 4096;
  bool chain = false, bare = true, kernel_part = true;
  int changes = 0;
};

class StackPolicyTest : public ::testing::Test {
 protected:
  // `cut` of `stacks` more walks ended where their copy did and wanted `wanted` bytes; all of them
  // read `depth`.
  void walk(uint64_t stacks, uint64_t cut, uint32_t wanted, uint32_t depth) {
    stats_.stacks += stacks;
    stats_.ended[static_cast<int>(model::StackEnd::copy_too_short)] += cut;
    needs_.copy_bytes = wanted;
    needs_.by_depth[static_cast<size_t>(std::bit_width(depth))] += stacks;
    policy_.reconsider(stats_, needs_);
  }

  FakeSwitchStacks switches_;
  StackPolicy policy_{switches_};
  unwind::UnwindStats stats_;
  StackBuilder::Needs needs_;
};

TEST_F(StackPolicyTest, FewStacksTellNothing) {
  walk(49, 49, 20'000, 100);
  EXPECT_EQ(switches_.changes, 0);
  walk(1, 1, 20'000, 100);
  EXPECT_EQ(switches_.changes, 1) << "fifty do";
}

TEST_F(StackPolicyTest, CopiesGrowToWhatWasWantedAndNoFurtherThanTheLimit) {
  walk(100, 10, 9'000, 4000);
  EXPECT_EQ(switches_.bytes, 16'384u);
  walk(100, 10, 60'000, 16'000);
  EXPECT_EQ(switches_.bytes, 32'768u);
  walk(100, 10, 60'000, 32'000);
  EXPECT_EQ(switches_.bytes, 32'768u);
  EXPECT_EQ(switches_.changes, 2) << "what cannot grow is not opened anew";
}

TEST_F(StackPolicyTest, CopiesShrinkOnceToWhatTheFirstWalksRead) {
  walk(1000, 0, 0, 1500);
  EXPECT_EQ(switches_.bytes, 2048u);
  walk(1000, 0, 0, 100);
  EXPECT_EQ(switches_.bytes, 2048u) << "only once: a size that swings costs events";
}

TEST_F(StackPolicyTest, OneDeepStackInAThousandDoesNotKeepTheCopyLarge) {
  needs_.by_depth[12] += 1;  // up to 4 KiB
  walk(1000, 0, 0, 300);
  EXPECT_EQ(switches_.bytes, 1024u);
}

TEST_F(StackPolicyTest, FramePointersAreFollowedWhereCodeNeedsThem) {
  needs_.frame_pointer_stacks = 5;
  walk(100, 0, 0, 4000);
  EXPECT_FALSE(switches_.chain) << "one in twenty is not more than one in twenty";
  needs_.frame_pointer_stacks += 6;
  walk(100, 0, 0, 4000);
  EXPECT_TRUE(switches_.chain);
  walk(100, 0, 0, 4000);
  EXPECT_TRUE(switches_.chain) << "and from then on";
}

TEST_F(StackPolicyTest, AboveARateKernelPartsAreTakenInATenthOfTheTime) {
  constexpr uint64_t kMany = 1000;  // in 50 ms: 20,000 a second
  TimeNs now = kNsPerSecond;
  uint64_t switches = 0;
  policy_.pace_kernel_stacks(switches, now);
  int taken = 0;
  for (int tick = 0; tick < 100; ++tick) {
    policy_.pace_kernel_stacks(switches += kMany, now += StackPolicy::kSwitchTickNs);
    taken += switches_.kernel_part;
  }
  EXPECT_EQ(taken, 10);
  EXPECT_TRUE(policy_.filled_in_kernel_stacks());
  policy_.pace_kernel_stacks(switches += 10, now += StackPolicy::kSwitchTickNs);
  EXPECT_TRUE(switches_.kernel_part) << "quiet again";
}

TEST_F(StackPolicyTest, SlowOrWithoutABareEventNothingIsLeftOut) {
  TimeNs now = kNsPerSecond;
  uint64_t switches = 0;
  for (int tick = 0; tick < 20; ++tick)
    policy_.pace_kernel_stacks(switches += 100, now += StackPolicy::kSwitchTickNs);
  EXPECT_TRUE(switches_.kernel_part);
  switches_.bare = false;
  for (int tick = 0; tick < 20; ++tick)
    policy_.pace_kernel_stacks(switches += 5000, now += StackPolicy::kSwitchTickNs);
  EXPECT_TRUE(switches_.kernel_part);
  EXPECT_FALSE(policy_.filled_in_kernel_stacks());
}

}  // namespace
}  // namespace assay::evidence
