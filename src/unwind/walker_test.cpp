#include "unwind/walker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unwind/arch_x86_64.h"
#include "unwind/table/table_builder.h"
#include "unwind/testing/synthetic_stack.h"

namespace assay::unwind {
namespace {

using model::StackEnd;
using ::testing::ElementsAre;
using testing::Rule;
using testing::SyntheticCode;
using testing::SyntheticStack;

uint64_t at(Rule rule) {
  return SyntheticCode::at(rule);
}
uint64_t address(size_t index) {
  return SyntheticStack::address(index);
}

class WalkerTest : public ::testing::Test {
 protected:
  WalkerTest() {
    auto elf = SyntheticCode::elf();
    auto bytes = build_table(**testing::open_elf(elf), "");
    table_ = *Table::from_bytes(std::move(*bytes));
    model::AddressSpace space;
    space.map(SyntheticCode::mapping());
    code_ = CodeMap(space, [&](model::ModuleId) { return table_; });
  }
  const UserStack& walk(const RawStack& raw) {
    Walker<X86_64>(raw, code_, 1, *scratch_, out_).run();
    return out_.stack;
  }
  std::vector<uint64_t> pcs() const {
    std::vector<uint64_t> out;
    for (const UserFrame& f : out_.stack.frames) out.push_back(f.pc);
    return out;
  }
  std::shared_ptr<const Table> table_;
  CodeMap code_;
  std::unique_ptr<WalkScratch> scratch_ = std::make_unique<WalkScratch>();
  Walk out_;
};

TEST_F(WalkerTest, WalksToTheRoot) {
  SyntheticStack s(at(Rule::leaf8), 8);
  s.word(0, at(Rule::frame32)).word(4, at(Rule::root));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::complete);
  EXPECT_THAT(pcs(), ElementsAre(at(Rule::leaf8), at(Rule::frame32), at(Rule::root)));
  EXPECT_FALSE(out_.stack.frames[0].is_return_address);
  EXPECT_TRUE(out_.stack.frames[1].is_return_address);
  EXPECT_THAT(out_.sps, ElementsAre(address(0), address(1), address(5)));
  EXPECT_EQ(out_.stack.copy_needed, 40u);
  EXPECT_EQ(out_.registers_used, 0u);
  EXPECT_FALSE(out_.stack.used_frame_pointers);
}

TEST_F(WalkerTest, AReturnAddressOfZeroIsTheRoot) {
  SyntheticStack s(at(Rule::leaf8), 8);
  s.word(0, at(Rule::frame32)).word(4, 0);
  EXPECT_EQ(walk(s.raw()).end, StackEnd::complete);
  EXPECT_EQ(pcs().size(), 2u);
}

TEST_F(WalkerTest, FollowsTheFramePointerWhenTheRuleSaysSo) {
  SyntheticStack s(at(Rule::fp16), 16);
  s.reg(model::kRegRbp, address(2)).word(2, address(6)).word(3, at(Rule::fp16));
  s.word(6, 0).word(7, at(Rule::root));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::complete);
  EXPECT_THAT(pcs(), ElementsAre(at(Rule::fp16), at(Rule::fp16), at(Rule::root)));
  EXPECT_EQ(out_.registers_used, 1u << model::kRegRbp);
  EXPECT_FALSE(out_.stack.used_frame_pointers) << "the rule is CFI's";
}

TEST_F(WalkerTest, PltDependsOnTheInstruction) {
  for (auto [pc, words] : {std::pair{at(Rule::plt), 1u}, {at(Rule::plt) + 4, 2u}}) {
    SyntheticStack s(pc, 8);
    s.word(words - 1, at(Rule::root));
    EXPECT_EQ(walk(s.raw()).end, StackEnd::complete) << std::hex << pc;
    EXPECT_EQ(out_.sps.back(), address(words));
  }
}

TEST_F(WalkerTest, ARealignedStackIsFoundThroughMemory) {
  SyntheticStack s(at(Rule::align), 16);
  s.reg(model::kRegRbp, address(3)).word(2, address(8)).word(3, address(9)).word(7, at(Rule::fp16));
  s.word(9, 0).word(10, at(Rule::root));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::complete);
  EXPECT_THAT(pcs(), ElementsAre(at(Rule::align), at(Rule::fp16), at(Rule::root)));
}

TEST_F(WalkerTest, ASignalFrameRestoresTheInterruptedFunction) {
  SyntheticStack s(at(Rule::leaf8), 64);
  s.word(0, at(Rule::signal));
  // The frame lies at word 1: rbp at 120, rsp at 160, rip at 168.
  s.word(1 + 15, address(50)).word(1 + 20, address(40)).word(1 + 21, at(Rule::fp16));
  s.word(50, 0).word(51, at(Rule::root));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::complete);
  EXPECT_THAT(pcs(),
              ElementsAre(at(Rule::leaf8), at(Rule::signal), at(Rule::fp16), at(Rule::root)));
  EXPECT_FALSE(out_.stack.frames[1].is_return_address) << "the restorer was not called";
  EXPECT_FALSE(out_.stack.frames[2].is_return_address) << "it was interrupted";
  EXPECT_THAT(out_.odd, ElementsAre(2u));
}

TEST_F(WalkerTest, AnInterruptedStackThatWasNotCopiedIsSaidToBeAnother) {
  // Far away, and as near as stacks of threads lie: above and below the handler's.
  for (uint64_t sp : {uint64_t{0x1234560000}, address(1 << 20), address(0) - 0x100000}) {
    SyntheticStack s(at(Rule::leaf8), 64);
    s.word(0, at(Rule::signal)).word(1 + 20, sp).word(1 + 21, at(Rule::frame32));
    s.word(1 + 16, 0xb0b);  // rbx at 128
    EXPECT_EQ(walk(s.raw()).end, StackEnd::other_stack) << std::hex << sp;
    EXPECT_THAT(pcs(), ElementsAre(at(Rule::leaf8), at(Rule::signal), at(Rule::frame32)));
    EXPECT_LE(out_.stack.copy_needed, 64u * 8) << "a larger copy would not have helped";
    EXPECT_EQ(out_.interrupted.sp(), sp);
    EXPECT_EQ(out_.interrupted.ip(), at(Rule::frame32));
    EXPECT_EQ(out_.interrupted.value[3], 0xb0bu);
    EXPECT_FALSE(out_.is_exact);
  }
}

TEST_F(WalkerTest, ASignalOnTheSameStackThatTheCopyCutsIsTooShort) {
  SyntheticStack s(at(Rule::leaf8), 64);
  s.word(0, at(Rule::signal)).word(1 + 20, address(1000)).word(1 + 21, at(Rule::frame32));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::copy_too_short);
  EXPECT_EQ(out_.interrupted.known, 0u);
}

TEST_F(WalkerTest, AnInterruptedFunctionIsLookedUpAtItsOwnAddress) {
  SyntheticStack s(at(Rule::leaf8), 64);
  s.word(0, at(Rule::signal)).word(1 + 20, address(40));
  s.word(1 + 21, at(Rule::frame32) - 8);  // its first byte: one before would be another rule
  s.word(43, at(Rule::root));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::complete);
  EXPECT_EQ(out_.sps.back(), address(44));
}

TEST_F(WalkerTest, AFunctionThatNobodyCalledIsLookedUpAtItsFirstByte) {
  uint64_t first_byte = at(Rule::after_none) - 8;
  SyntheticStack s(at(Rule::leaf8), 8);
  // A frame pointer that could be followed must not lead past it.
  s.reg(model::kRegRbp, address(4)).word(0, first_byte).word(4, 0).word(5, at(Rule::root));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::complete);
  EXPECT_THAT(pcs(), ElementsAre(at(Rule::leaf8), first_byte));
  EXPECT_FALSE(out_.stack.frames[1].is_return_address);
  EXPECT_FALSE(out_.stack.used_frame_pointers);
}

TEST_F(WalkerTest, OtherRegistersAreFollowedWhenACfaNeedsThem) {
  // saves_rbx ← rbx24, whose rbx was saved by its callee at CFA − 16.
  SyntheticStack s(at(Rule::saves_rbx), 16);
  s.reg(3, 0xdead).word(0, address(5)).word(1, at(Rule::rbx24)).word(7, at(Rule::root));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::complete);
  EXPECT_THAT(pcs(), ElementsAre(at(Rule::saves_rbx), at(Rule::rbx24), at(Rule::root)));
  EXPECT_EQ(out_.sps.back(), address(8));
  // At the leaf its sampled value counts.
  SyntheticStack leaf(at(Rule::rbx24), 16);
  leaf.reg(3, address(1)).word(3, at(Rule::root));
  EXPECT_EQ(walk(leaf.raw()).end, StackEnd::complete);
  EXPECT_EQ(out_.registers_used, 1u << 3);
}

TEST_F(WalkerTest, ExpressionsAreEvaluated) {
  SyntheticStack s(at(Rule::expression), 16);
  s.word(1, at(Rule::val_expression)).word(2, at(Rule::rbx24));
  s.word(8, at(Rule::root));  // rbx = CFA + 32 = word 7, CFA = rbx + 24 = word 10
  s.word(9, at(Rule::root));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::complete);
  EXPECT_THAT(pcs(), ElementsAre(at(Rule::expression), at(Rule::val_expression), at(Rule::rbx24),
                                 at(Rule::root)));
  EXPECT_EQ(out_.sps.back(), address(10));
}

TEST_F(WalkerTest, AReturnAddressInARegister) {
  SyntheticStack s(at(Rule::ra_register), 16);
  s.reg(1, at(Rule::root));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::complete);
  EXPECT_THAT(pcs(), ElementsAre(at(Rule::ra_register), at(Rule::root)));
}

TEST_F(WalkerTest, UnknownRegistersEndTheWalk) {
  SyntheticStack s(at(Rule::fp16), 8);
  EXPECT_EQ(walk(s.forget(model::kRegRbp).raw()).end, StackEnd::register_unknown);
  SyntheticStack rbx(at(Rule::rbx24), 8);
  EXPECT_EQ(walk(rbx.raw()).end, StackEnd::register_unknown);
  // A callee-saved register that no callee saved is the sampled one; a scratch register is lost.
  SyntheticStack lost(at(Rule::leaf8), 8);
  lost.reg(1, at(Rule::root)).word(0, at(Rule::ra_register));
  EXPECT_EQ(walk(lost.raw()).end, StackEnd::register_unknown);
  SyntheticStack none(at(Rule::leaf8), 8);
  EXPECT_EQ(walk(none.forget(model::kRegRsp).raw()).end, StackEnd::register_unknown);
  EXPECT_EQ(pcs().size(), 1u) << "the leaf is still known";
  EXPECT_EQ(walk(none.forget(model::kRegRip).raw()).end, StackEnd::register_unknown);
  EXPECT_TRUE(pcs().empty());
}

TEST_F(WalkerTest, TheEndOfTheCopySaysHowMuchIsMissing) {
  SyntheticStack s(at(Rule::leaf8), 16);
  s.word(0, at(Rule::frame32)).word(4, at(Rule::root));
  EXPECT_EQ(walk(s.raw_first(4)).end, StackEnd::copy_too_short);
  EXPECT_EQ(out_.stack.copy_needed, 40u);
  EXPECT_EQ(walk(s.raw_first(5)).end, StackEnd::complete);
  EXPECT_EQ(walk(s.raw_first(0)).end, StackEnd::copy_too_short);
  EXPECT_EQ(out_.stack.copy_needed, 8u);
}

TEST_F(WalkerTest, StacksThatDoNotUnwindEnd) {
  SyntheticStack below(at(Rule::fp16), 8);
  EXPECT_EQ(walk(below.reg(model::kRegRbp, address(0) - 64).raw()).end, StackEnd::bad_memory);
  SyntheticStack far(at(Rule::fp16), 8);
  EXPECT_EQ(walk(far.reg(model::kRegRbp, 0x7fffffff0000).raw()).end, StackEnd::bad_memory);
  SyntheticStack wraps(at(Rule::fp16), 8);
  EXPECT_EQ(walk(wraps.reg(model::kRegRbp, UINT64_MAX - 7).raw()).end, StackEnd::bad_memory);
  SyntheticStack unknown(at(Rule::garbage), 8);
  EXPECT_EQ(walk(unknown.raw()).end, StackEnd::no_unwind_info);
}

TEST_F(WalkerTest, DeepRecursionStopsAtTheLimit) {
  SyntheticStack s(at(Rule::leaf8), kMaxFrames + 10);
  for (size_t i = 0; i < kMaxFrames + 10; ++i) s.word(i, at(Rule::leaf8));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::too_deep);
  EXPECT_EQ(pcs().size(), kMaxFrames);
}

TEST_F(WalkerTest, FramePointersCarryOnWhereThereIsNoCfi) {
  SyntheticStack s(at(Rule::none), 16);
  s.reg(model::kRegRbp, address(2)).word(2, 0).word(3, at(Rule::frame32)).word(7, at(Rule::root));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::complete);
  EXPECT_THAT(pcs(), ElementsAre(at(Rule::none), at(Rule::frame32), at(Rule::root)));
  EXPECT_TRUE(out_.stack.used_frame_pointers);
}

TEST_F(WalkerTest, ImplausibleFramePointersAreNotFollowed) {
  auto end_with = [&](uint64_t fp, uint64_t caller) {
    SyntheticStack s(at(Rule::none), 16);
    s.reg(model::kRegRbp, fp).word(2, 0).word(3, caller);
    return walk(s.raw()).end;
  };
  EXPECT_EQ(end_with(address(2), at(Rule::root)), StackEnd::complete);
  EXPECT_EQ(end_with(address(2) + 4, at(Rule::root)), StackEnd::no_unwind_info) << "not aligned";
  EXPECT_EQ(end_with(address(0) - 8, at(Rule::root)), StackEnd::no_unwind_info) << "below sp";
  EXPECT_EQ(end_with(address(2), 0x99), StackEnd::no_unwind_info) << "caller is not code";
  EXPECT_EQ(end_with(0x600000000000, at(Rule::root)), StackEnd::no_unwind_info) << "not the stack";
  EXPECT_EQ(end_with(0, at(Rule::root)), StackEnd::no_unwind_info) << "nothing known of the leaf";
  EXPECT_EQ(end_with(address(2), 0), StackEnd::no_unwind_info) << "fp is something else";
  EXPECT_EQ(end_with(address(20), at(Rule::root)), StackEnd::copy_too_short);
}

TEST_F(WalkerTest, FramePointersThatEndInZeroAreTheRoot) {
  SyntheticStack s(at(Rule::none), 16);
  s.reg(model::kRegRbp, address(2)).word(2, 0).word(3, at(Rule::none));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::complete);
  EXPECT_EQ(pcs().size(), 2u);
  EXPECT_TRUE(out_.stack.used_frame_pointers);
}

TEST_F(WalkerTest, ACallThroughANullPointerIsPopped) {
  SyntheticStack s(0, 16);
  s.word(0, at(Rule::frame32)).word(4, at(Rule::root));
  EXPECT_EQ(walk(s.raw()).end, StackEnd::complete);
  EXPECT_THAT(pcs(), ElementsAre(0, at(Rule::frame32), at(Rule::root)));
  EXPECT_TRUE(out_.stack.popped_call);
  SyntheticStack wild(0, 16);
  EXPECT_EQ(walk(wild.word(0, 0x77).raw()).end, StackEnd::no_unwind_info);
}

TEST_F(WalkerTest, VsyscallsReturnFromTheTopOfTheStack) {
  SyntheticStack s(0xffffffffff600400, 16);
  EXPECT_EQ(walk(s.word(0, at(Rule::root)).raw()).end, StackEnd::complete);
  EXPECT_EQ(pcs().size(), 2u);
}

TEST_F(WalkerTest, TheFirstAndLastAddressOfAMappingAreItsOwn) {
  uint64_t last = SyntheticCode::mapping().end - 1;
  EXPECT_TRUE(code_.find(SyntheticCode::kCode));
  EXPECT_TRUE(code_.find(last));
  EXPECT_FALSE(code_.find(last + 1));
  EXPECT_FALSE(code_.find(SyntheticCode::kCode - 1));
}

}  // namespace
}  // namespace assay::unwind
