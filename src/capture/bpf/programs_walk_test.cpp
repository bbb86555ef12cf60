// The walks of the BPF programs, over stacks made for the purpose.
#include <gmock/gmock.h>

#include "capture/bpf/testing/programs_fixture.h"

namespace assay::capture {
namespace {

using namespace fake;  // the made-up program's functions and rules
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class BpfWalk : public ProgramsFixture {};

TEST_F(BpfWalk, AStackIsWalkedByStackPointer) {
  put(1, in(one_word));
  put(2, in(two_words));
  put(4, in(root));
  map_stack();
  EXPECT_THAT(walk(), ElementsAre(in(two_words) | kLeaf, in(one_word), in(two_words), in(root)));
  EXPECT_EQ(end(), bpf::kEndComplete);
  EXPECT_THAT(last_.raws, IsEmpty());
  ASSERT_THAT(last_.samples, SizeIs(1));
  EXPECT_EQ(last_.samples[0].user_stack, last_.stacks.begin()->first);
  EXPECT_EQ(last_.samples[0].tid, 100u);
}

// A function that ends with a call: the return address is the next function's first.
TEST_F(BpfWalk, AReturnAddressBelongsToTheCallBeforeIt) {
  put(1, in(by_frame, 0));  // of a call at the end of two_words
  put(3, in(root));
  map_stack();
  EXPECT_THAT(walk(), ElementsAre(in(two_words) | kLeaf, in(by_frame, 0), in(root)));
}

TEST_F(BpfWalk, AFramePointerIsFollowedFromWhereItWasSaved) {
  registers().ip = in(by_frame);
  registers().bp = kStack + 8 * 10;
  put(10, kStack + 8 * 20);  // the caller's, saved at CFA − 16
  put(11, in(by_frame));
  put(20, 0xdead);
  put(21, in(root));
  map_stack();
  EXPECT_THAT(walk(), ElementsAre(in(by_frame) | kLeaf, in(by_frame), in(root)));
}

TEST_F(BpfWalk, APltStubHasPushedAWordOrNotYet) {
  registers().ip = kCode + plt * 0x100 + 0x2a;  // 10 bytes into its 16
  put(0, in(root));
  map_stack();
  EXPECT_THAT(walk(), ElementsAre(registers().ip | kLeaf, in(root)));
  registers().ip = kCode + plt * 0x100 + 0x2b;
  put(0, 0x1234);
  put(1, in(root));
  map_stack();
  EXPECT_THAT(walk(), ElementsAre(registers().ip | kLeaf, in(root)));
}

TEST_F(BpfWalk, ASignalsFrameLeadsBackToWhatItInterrupted) {
  put(1, in(restorer));
  put(2 + 160 / 8, kStack + 8 * 100);  // sp, pc and fp of the kernel's frame at word 2
  put(2 + 168 / 8, in(by_frame));
  put(2 + 120 / 8, kStack + 8 * 200);
  put(201, in(root));
  map_stack();
  EXPECT_THAT(walk(), ElementsAre(in(two_words) | kLeaf, in(restorer) | kLeaf, in(by_frame) | kLeaf,
                                  in(root)))
      << "neither the restorer nor the interrupted place is behind a call";
}

TEST_F(BpfWalk, WithoutRulesFramePointersAreTriedAndToldOf) {
  registers().ip = in(without_rules);
  registers().bp = kStack + 8 * 10;
  put(10, kStack + 8 * 20);
  put(11, in(root));
  map_stack();
  EXPECT_THAT(walk(), ElementsAre(in(without_rules) | kLeaf, in(root)));
  EXPECT_TRUE(last_.stacks.begin()->second.flags & bpf::kStackFramePointers);
  registers().bp = kStack + 4;  // not aligned
  EXPECT_THAT(walk(), IsEmpty());
  EXPECT_EQ(raw_end(), bpf::kEndNoRule);
  registers().bp = kStack - 8;  // below the stack pointer
  EXPECT_THAT(walk(), IsEmpty());
  EXPECT_EQ(raw_end(), bpf::kEndNoRule);
}

TEST_F(BpfWalk, AnAlignedFrameKeepsItsCfaInMemory) {
  registers().ip = in(aligned);
  registers().bp = kStack + 8 * 10;
  put(9, kStack + 8 * 30);  // the CFA lies below the frame pointer
  put(29, in(root));
  map_stack();
  EXPECT_THAT(walk(), ElementsAre(in(aligned) | kLeaf, in(root)));
}

TEST_F(BpfWalk, ANewThreadsFirstFrameHasNoCaller) {
  put(1, in(new_thread));
  put(2, 0);
  map_stack();
  EXPECT_THAT(walk(), ElementsAre(in(two_words) | kLeaf, in(new_thread)));
  put(2, in(root));  // the thread that made it comes by there as well
  map_stack();
  EXPECT_THAT(walk(), ElementsAre(in(two_words) | kLeaf, in(new_thread), in(root)));
}

TEST_F(BpfWalk, AFrameBehindALargeArrayIsInTheFarWindow) {
  registers().ip = in(large_frame);
  put(1199, in(two_words));
  put(1201, in(root));
  map_stack();
  EXPECT_THAT(walk(), ElementsAre(in(large_frame) | kLeaf, in(two_words), in(root)));
}

TEST_F(BpfWalk, WhatTheProgramCannotWalkIsHandedOverRaw) {
  struct Case {
    uint64_t ip;
    uint8_t end;
  };
  put(0, 0x77);
  map_stack();
  for (const Case& one :
       {Case{in(full_rule), bpf::kEndFullRule}, Case{0x900000, bpf::kEndUnmapped},
        Case{kCode + functions * 0x100, bpf::kEndUnmapped}, Case{in(odd_rule), bpf::kEndNoRule}}) {
    registers().ip = one.ip;
    registers().r15 = 0x1515;
    EXPECT_THAT(walk(), IsEmpty()) << one.ip;
    ASSERT_THAT(last_.raws, SizeIs(1)) << one.ip;
    EXPECT_EQ(last_.raws[0].end, one.end) << one.ip;
    EXPECT_EQ(last_.raws[0].regs.ip, one.ip);
    EXPECT_EQ(last_.raws[0].regs.r15, 0x1515u);
    ASSERT_GE(last_.raws[0].copy_bytes, 4096u);
    EXPECT_EQ(last_.raws[0].copy[0], 0x77);
    EXPECT_EQ(last_.samples[0].user_stack, last_.raws[0].id);
  }
}

TEST_F(BpfWalk, APageThatIsNotInMemoryEndsTheWalk) {
  words_.resize(512);  // one page
  registers().sp = kStack + 8 * 509;
  put(510, in(two_words));
  put(511, 1);
  map_stack();
  EXPECT_THAT(walk(), IsEmpty()) << "the next frame's return address is on the page after";
  EXPECT_EQ(raw_end(), bpf::kEndNoMemory);
  EXPECT_EQ(last_.raws[0].copy_bytes, 24u) << "up to the page's end";
}

TEST_F(BpfWalk, TheDeepestStackIsCut) {
  for (size_t i = 0; i < 1000; ++i) put(i, in(one_word));
  put(1000, in(root));
  registers().ip = in(one_word);
  map_stack();
  EXPECT_THAT(walk(), SizeIs(bpf::kMostFrames));
  EXPECT_EQ(end(), bpf::kEndTooDeep);
}

TEST_F(BpfWalk, ARangeIsFoundAmongMany) {
  std::vector<bpf::range> ranges;
  for (uint64_t i = 0; i < 700; ++i) {
    uint64_t begin = 0x100000 + i * 0x2000;
    ranges.push_back({begin, begin + 0x1000, 0, 0, 0});  // no table: by frame pointer
  }
  host_watch(kPid, lists_.set(kPid, ranges, 0));
  registers().bp = kStack;
  put(0, 0);
  map_stack();
  for (uint64_t i : {0, 1, 350, 698, 699}) {
    put(1, 0x100000 + i * 0x2000 + 5);
    map_stack();
    registers().ip = 0x100000 + (699 - i) * 0x2000;
    EXPECT_THAT(walk(), ElementsAre(registers().ip | kLeaf, 0x100000 + i * 0x2000 + 5)) << i;
    registers().ip += 0x1000;  // in the gap behind it
    EXPECT_THAT(walk(), IsEmpty());
    EXPECT_EQ(raw_end(), bpf::kEndUnmapped);
  }
}

}  // namespace
}  // namespace assay::capture
