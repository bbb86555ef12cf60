#include "unwind/unwinder.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/testing/temporary_directory.h"
#include "unwind/testing/synthetic_stack.h"
#include "unwind/walk_cache.h"

namespace assay::unwind {
namespace {

using model::StackEnd;
using testing::Rule;
using testing::SyntheticCode;
using testing::SyntheticStack;

uint64_t at(Rule rule) {
  return SyntheticCode::at(rule);
}

class UnwinderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto elf = SyntheticCode::elf();
    std::ofstream(dir_ + "/code", std::ios::binary)
        .write(reinterpret_cast<const char*>(elf.data()), static_cast<std::streamsize>(elf.size()));
    module_.path = dir_ + "/code";
    space_.map(SyntheticCode::mapping());
    unwinder_->prepare(0, SyntheticCode::mapping(), module_);
  }

  const UserStack& unwind(const RawStack& raw) { return unwinder_->unwind(raw, space_); }

  // leaf8 ← `depth` × leaf8 ← frame32 ← root.
  static SyntheticStack recursion(size_t depth) {
    SyntheticStack s(at(Rule::leaf8), depth + 8);
    for (size_t i = 0; i < depth; ++i) s.word(i, at(Rule::leaf8));
    s.word(depth, at(Rule::frame32)).word(depth + 4, at(Rule::root));
    return s;
  }

  TemporaryDirectory scratch_;
  std::string dir_ = scratch_.path();
  model::Module module_;
  model::AddressSpace space_;
  std::unique_ptr<Unwinder> unwinder_ = Unwinder::create("");
};

TEST_F(UnwinderTest, AnEqualSampleIsAnsweredFromTheCache) {
  SyntheticStack s = recursion(10);
  auto first = unwind(s.raw());
  EXPECT_EQ(first.end, StackEnd::complete);
  EXPECT_EQ(unwinder_->stats().cache_hits, 0u);
  auto second = unwind(s.raw());
  EXPECT_EQ(unwinder_->stats().cache_hits, 1u);
  ASSERT_EQ(second.frames.size(), first.frames.size());
  for (size_t i = 0; i < first.frames.size(); ++i)
    EXPECT_EQ(second.frames[i].pc, first.frames[i].pc);
  EXPECT_EQ(second.copy_needed, first.copy_needed);
  EXPECT_EQ(unwinder_->stats().stacks, 2u);
  EXPECT_EQ(unwinder_->stats().complete, 2u);
}

TEST_F(UnwinderTest, AnyWordTheWalkReadMatters) {
  SyntheticStack s = recursion(3);
  unwind(s.raw());
  s.word(5, 0x5555);  // in frame32's locals: not read
  unwind(s.raw());
  EXPECT_EQ(unwinder_->stats().cache_hits, 1u);
  s.word(2, at(Rule::root));
  EXPECT_EQ(unwind(s.raw()).frames.size(), 4u);
  EXPECT_EQ(unwinder_->stats().cache_hits, 1u);
}

TEST_F(UnwinderTest, TheZeroThatEndsAWalkMatters) {
  SyntheticStack s(at(Rule::leaf8), 8);
  s.word(0, at(Rule::leaf8)).word(1, 0).word(2, at(Rule::root));
  EXPECT_EQ(unwind(s.raw()).frames.size(), 2u);
  s.word(1, at(Rule::leaf8));
  EXPECT_EQ(unwind(s.raw()).frames.size(), 4u);
}

TEST_F(UnwinderTest, ARegisterTheWalkUsedMatters) {
  SyntheticStack s(at(Rule::fp16), 16);
  s.reg(model::kRegRbp, s.address(2))
      .word(3, at(Rule::root))
      .word(7, at(Rule::leaf8))
      .word(8, at(Rule::root));
  unwind(s.raw());
  s.reg(model::kRegRbp, s.address(6));
  EXPECT_EQ(unwind(s.raw()).frames.size(), 3u);
  EXPECT_EQ(unwinder_->stats().cache_hits, 0u);
}

TEST_F(UnwinderTest, NewMappingsMakeCachedWalksStale) {
  SyntheticStack s = recursion(3);
  unwind(s.raw());
  space_.map({0x10000, 0x20000, 0, {7}});
  unwind(s.raw());
  EXPECT_EQ(unwinder_->stats().cache_hits, 0u);
  space_.clear();
  EXPECT_EQ(unwind(s.raw()).end, StackEnd::no_unwind_info);
}

TEST_F(UnwinderTest, ATruncatedStackJoinsAnEarlierOne) {
  SyntheticStack s = recursion(40);
  auto whole = unwind(s.raw());
  auto cut = unwind(s.raw_first(20));
  EXPECT_TRUE(cut.joined);
  EXPECT_EQ(cut.end, StackEnd::complete);
  ASSERT_EQ(cut.frames.size(), whole.frames.size());
  EXPECT_EQ(cut.frames.back().pc, at(Rule::root));
  EXPECT_EQ(unwinder_->stats().joined, 1u);
}

TEST_F(UnwinderTest, JoiningNeedsTheSameThreadAndStackPointers) {
  SyntheticStack s = recursion(40);
  unwind(s.raw(1));
  EXPECT_EQ(unwind(s.raw_first(20, 2)).end, StackEnd::copy_too_short) << "another thread";
  // The same return addresses elsewhere on the stack.
  SyntheticStack higher = recursion(40);
  higher.reg(model::kRegRsp, SyntheticStack::kSp + 0x10000);
  EXPECT_EQ(unwind(higher.raw_first(20, 1)).end, StackEnd::copy_too_short);
  unwinder_->forget_thread(1);
  EXPECT_EQ(unwind(s.raw_first(20, 1)).end, StackEnd::copy_too_short) << "forgotten";
}

// A handler on a stack of its own, which interrupted `pc` at `sp` of the usual one.
SyntheticStack handler_over(uint64_t pc, uint64_t sp, uint64_t rbx = 0) {
  SyntheticStack s(at(Rule::leaf8), 64);
  s.reg(model::kRegRsp, SyntheticStack::kSp - 0x1000000);
  s.word(0, at(Rule::signal)).word(1 + 16, rbx).word(1 + 20, sp).word(1 + 21, pc);
  return s;
}

TEST_F(UnwinderTest, AHandlersStackContinuesInWhatItInterrupted) {
  SyntheticStack s = recursion(10);
  for (int reg = 0; reg < 16; ++reg) {
    if (reg != model::kRegRsp) s.reg(reg, 0);
  }
  auto before = unwind(s.raw());
  // At the same place, and with a system call put back to be made again.
  for (uint64_t pc : {at(Rule::leaf8), at(Rule::leaf8) - 2}) {
    auto stack = unwind(handler_over(pc, SyntheticStack::kSp).raw());
    EXPECT_EQ(stack.end, StackEnd::complete);
    EXPECT_TRUE(stack.joined);
    EXPECT_EQ(stack.frames.size(), before.frames.size() + 2);
    EXPECT_EQ(stack.frames.back().pc, at(Rule::root));
  }
  EXPECT_EQ(unwind(handler_over(at(Rule::frame32), SyntheticStack::kSp).raw()).end,
            StackEnd::other_stack)
      << "another place";
  EXPECT_EQ(unwind(handler_over(at(Rule::leaf8), SyntheticStack::kSp + 8).raw()).end,
            StackEnd::other_stack)
      << "another stack pointer";
  EXPECT_EQ(unwind(handler_over(at(Rule::leaf8), SyntheticStack::kSp, 1).raw()).end,
            StackEnd::other_stack)
      << "another register that calls keep";
  EXPECT_EQ(unwind(handler_over(at(Rule::leaf8), SyntheticStack::kSp).raw(2)).end,
            StackEnd::other_stack)
      << "another thread";
}

TEST_F(UnwinderTest, TheChainLeadsFromAHandlerToTheCallerOfWhatItInterrupted) {
  std::vector<uint64_t> chain{at(Rule::leaf8), at(Rule::signal), at(Rule::frame32), at(Rule::root)};
  SyntheticStack s = handler_over(at(Rule::fp16), SyntheticStack::kSp);
  s.word(1 + 15, SyntheticStack::kSp + 64);  // its frame pointer
  s.chain(chain);
  auto stack = unwind(s.raw());
  EXPECT_EQ(stack.end, StackEnd::complete);
  EXPECT_EQ(stack.frames.size(), 5u) << "the interrupted function and its callers";
  EXPECT_TRUE(stack.used_frame_pointers);
  // Interrupted where the frame pointer is another function's, the chain would skip one.
  SyntheticStack other = handler_over(at(Rule::leaf8), SyntheticStack::kSp);
  other.chain(chain);
  EXPECT_EQ(unwind(other.raw()).end, StackEnd::other_stack);
}

TEST_F(UnwinderTest, TheKernelsChainContinuesWhereTheCopyEnds) {
  SyntheticStack s = recursion(3);
  s.chain({at(Rule::leaf8), at(Rule::leaf8), at(Rule::leaf8), at(Rule::leaf8), at(Rule::frame32),
           at(Rule::root)});
  auto stack = unwind(s.raw_first(2));
  EXPECT_EQ(stack.end, StackEnd::complete) << "the chain's last frame is a first function";
  EXPECT_EQ(stack.frames.size(), 6u);
  EXPECT_TRUE(stack.used_frame_pointers);
  EXPECT_FALSE(stack.joined);
}

TEST_F(UnwinderTest, AChainWithoutAKnownRootSaysSo) {
  SyntheticStack s = recursion(3);
  s.chain({at(Rule::leaf8), at(Rule::leaf8), at(Rule::leaf8), at(Rule::leaf8), at(Rule::frame32)});
  EXPECT_EQ(unwind(s.raw_first(2)).end, StackEnd::frame_pointers);
}

TEST_F(UnwinderTest, AChainThatCannotBeAlignedIsNotUsed) {
  SyntheticStack s = recursion(3);
  // Two places where our last frame could be.
  s.chain({at(Rule::frame32), at(Rule::leaf8), at(Rule::leaf8), at(Rule::root)});
  EXPECT_EQ(unwind(s.raw_first(2)).end, StackEnd::copy_too_short);
  s.chain({at(Rule::frame32), at(Rule::root)});
  EXPECT_EQ(unwind(s.raw_first(2)).end, StackEnd::copy_too_short) << "not in it at all";
}

TEST_F(UnwinderTest, WithoutRegistersTheChainIsAllThereIs) {
  SyntheticStack s(0, 0);
  s.chain({at(Rule::leaf8), at(Rule::frame32), at(Rule::root)});
  RawStack raw = s.raw();
  raw.registers.known = 0;
  auto stack = unwind(raw);
  EXPECT_EQ(stack.frames.size(), 3u);
  EXPECT_FALSE(stack.frames[0].is_return_address);
  EXPECT_EQ(stack.end, StackEnd::complete);
  raw.fp_chain = {};
  EXPECT_EQ(unwind(raw).end, StackEnd::register_unknown);
}

TEST(WalkCache, StaysBelowItsLimit) {
  WalkCache cache;
  for (pid_t tid = 1; tid < 4000; ++tid) {
    Walk& walk = cache.victim(tid);
    walk.clear();
    walk.stack.frames.resize(2000);
    walk.sps.resize(2000);
    cache.stored(tid, walk, 1);
    ASSERT_LE(cache.bytes(), WalkCache::kMaxBytes);
  }
  for (pid_t tid = 1; tid < 4000; ++tid) cache.forget(tid);
  EXPECT_EQ(cache.bytes(), 0u);
}

}  // namespace
}  // namespace assay::unwind
