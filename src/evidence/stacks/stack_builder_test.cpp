#include "evidence/stacks/stack_builder.h"

#include "evidence/testing/evidence_fixture.h"

namespace assay::evidence {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StackBuilderTest : public testing::EvidenceTest {
 protected:
  capture::SampleRecord sample(capture::EventKind kind, std::span<const uint64_t> kernel = {}) {
    capture::SampleRecord record;
    record.kind = kind;
    record.kernel_chain = kernel;
    record.registers.set(model::kRegRip, kCode);
    record.registers.set(model::kRegRsp, 0x7000);
    record.stack = copy_;
    return record;
  }
  model::StackId build(capture::SampleRecord record) { return stacks_.build(kPid, 71, record, 1); }

  std::vector<std::byte> copy_ = std::vector<std::byte>(64);
  const std::vector<uint64_t> kernel_{0xffff'0000'0000'0010, 0xffff'0000'0000'0020};
};

TEST_F(StackBuilderTest, KernelFramesLieOnTopAndReturnAddressesAreTheirCalls) {
  walk_finds({kCode + 0x10, kCode + 0x20});
  model::StackId stack = build(sample(capture::EventKind::on_cpu, kernel_));
  EXPECT_THAT(sink_.addresses(stack),
              ElementsAre(0xffff'0000'0000'0010, 0xffff'0000'0000'001f, 0x1010, 0x101f));
  EXPECT_EQ(sink_.frames[1].module, spaces_.of(kPid).find(kCode)->module);
  EXPECT_EQ(sink_.frames[2].module, spaces_.kernel());
}

TEST_F(StackBuilderTest, WhatIsKnownIsNotAddedAgain) {
  walk_finds({kCode + 0x10, kCode + 0x20});
  model::StackId first = build(sample(capture::EventKind::on_cpu));
  walk_finds({kCode + 0x10, kCode + 0x20});
  EXPECT_EQ(build(sample(capture::EventKind::on_cpu)), first);
  walk_finds({kCode + 0x30, kCode + 0x20});
  EXPECT_NE(build(sample(capture::EventKind::on_cpu)), first);
  EXPECT_EQ(sink_.frames.size(), 3u);
  EXPECT_EQ(sink_.stacks.size(), 3u);
  EXPECT_EQ(new_frames_, sink_.frames) << "the same are to be named";
}

TEST_F(StackBuilderTest, ACutStackHasAMarkerAtItsRoot) {
  walk_finds({kCode + 0x10}, model::StackEnd::bad_memory);
  model::StackId stack = build(sample(capture::EventKind::on_cpu));
  EXPECT_THAT(sink_.addresses(stack),
              ElementsAre(0x1010, static_cast<uint64_t>(model::StackEnd::bad_memory)));
  EXPECT_EQ(sink_.frames[0].module, spaces_.marker());
}

TEST_F(StackBuilderTest, AnAddressWithoutAMappingIsTheProcessesOwnAndAbsolute) {
  walk_finds({0x900});
  model::StackId stack = build(sample(capture::EventKind::on_cpu));
  EXPECT_THAT(sink_.addresses(stack), ElementsAre(0x900));
  const model::Module& module = spaces_.modules()[sink_.frames[0].module];
  EXPECT_EQ(module.kind, model::ModuleKind::anonymous);
  EXPECT_EQ(module.path, "[anon 5000070]");
}

TEST_F(StackBuilderTest, ABareSwitchGetsTheKernelsPartThatItsUserStackHadLast) {
  walk_finds({kCode + 0x10});
  model::StackId whole = build(sample(capture::EventKind::off_cpu, kernel_));
  capture::SampleRecord bare = sample(capture::EventKind::off_cpu_bare);
  EXPECT_EQ(stacks_.build(kPid, 71, bare, 2), whole);
  EXPECT_THAT(bare.kernel_chain, ElementsAre(kernel_[0], kernel_[1])) << "its wait's site reads it";
  walk_finds({kCode + 0x40});
  EXPECT_THAT(sink_.addresses(build(sample(capture::EventKind::off_cpu_bare))), ElementsAre(0x1040))
      << "never seen with its kernel part";
}

TEST_F(StackBuilderTest, WithoutRegistersThereIsNoUserPart) {
  capture::SampleRecord record;
  record.kind = capture::EventKind::on_cpu;
  record.kernel_chain = kernel_;
  EXPECT_THAT(sink_.addresses(build(record)),
              ElementsAre(0xffff'0000'0000'0010, 0xffff'0000'0000'001f));
  EXPECT_EQ(unwinder_.walks, 0);
  EXPECT_EQ(stacks_.build_user({}, 1).value, 0u);
}

TEST_F(StackBuilderTest, WhatWalksWantedIsToldOnce) {
  walk_finds({kCode + 0x10}, model::StackEnd::copy_too_short);
  unwinder_.result.copy_needed = 3000;
  unwinder_.result.used_frame_pointers = true;
  build(sample(capture::EventKind::off_cpu));
  StackBuilder::Needs needs = stacks_.take_needs();
  EXPECT_EQ(needs.copy_bytes, 3000u);
  EXPECT_EQ(needs.frame_pointer_stacks, 1u);
  EXPECT_EQ(needs.deeper_than(2048), 1u);
  EXPECT_EQ(needs.deeper_than(4096), 0u);
  EXPECT_EQ(stacks_.take_needs().copy_bytes, 0u);
  capture::SampleRecord cut = sample(capture::EventKind::off_cpu);
  cut.stack = {};
  build(cut);
  EXPECT_EQ(stacks_.take_needs().frame_pointer_stacks, 1u)
      << "without a copy frame pointers say nothing of the code";
}

}  // namespace
}  // namespace assay::evidence
