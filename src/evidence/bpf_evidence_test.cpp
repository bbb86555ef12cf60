#include "evidence/bpf_evidence.h"

#include <sys/syscall.h>

#include "evidence/testing/evidence_fixture.h"

namespace assay::evidence {
namespace {

namespace bpf = capture::bpf;
using model::StackEnd;
using ::testing::ElementsAre;

template <class T>
std::span<const std::byte> bytes_of(const T& record) {
  return std::as_bytes(std::span(&record, 1));
}

class BpfEvidenceTest : public testing::EvidenceTest {
 protected:
  static constexpr TimeNs kBegin = 1000, kEnd = 100 * kNsPerSecond;

  BpfEvidenceTest() {
    main_ = tasks_.add(kPid, kPid);
    other_ = tasks_.add(kPid, kPid + 1);
    off_cpu_.existing_thread(main_, kBegin);
    off_cpu_.existing_thread(other_, kBegin);
  }

  template <class T>
  static T record(uint32_t type, TimeNs time) {
    T out{};
    out.head.type = type;
    out.head.cpu = 3;
    out.head.size = sizeof out;
    out.head.time = static_cast<uint64_t>(time);
    return out;
  }
  bool stack(uint32_t id, std::vector<uint64_t> pcs, TimeNs time = kBegin, uint32_t replaces = 0) {
    auto out = record<bpf::stack_record>(bpf::kRecordStack, time);
    out.id = id;
    out.tgid = kPid;
    out.replaces = replaces;
    out.count = static_cast<uint16_t>(pcs.size());
    std::ranges::copy(pcs, out.pcs);
    return bpf_.handle(bytes_of(out).first(offsetof(bpf::stack_record, pcs) + 8 * pcs.size()),
                       kEnd);
  }
  bool kernel(uint32_t id, std::vector<uint64_t> pcs) {
    auto out = record<bpf::kernel_record>(bpf::kRecordKernel, kBegin);
    out.id = id;
    out.count = static_cast<uint32_t>(pcs.size());
    std::ranges::copy(pcs, out.pcs);
    return bpf_.handle(bytes_of(out), kEnd);
  }
  bpf::wait_record wait(TimeNs out, TimeNs in) {
    auto wait = record<bpf::wait_record>(bpf::kRecordWait, in);
    wait.tid = wait.tgid = kPid;
    wait.out = static_cast<uint64_t>(out);
    wait.came = static_cast<uint64_t>(in);
    wait.syscall = model::kNoSyscall;
    return wait;
  }
  bool handle(const auto& record) { return bpf_.handle(bytes_of(record), kEnd); }
  void sample(uint32_t user, uint32_t kernel, TimeNs time) {
    auto out = record<bpf::sample_record>(bpf::kRecordSample, time);
    out.tid = out.tgid = kPid;
    out.user_stack = user;
    out.kernel_stack = kernel;
    EXPECT_TRUE(handle(out));
  }

  model::ThreadId main_, other_;
  WaitSites sites_{proc_, symbolizer_, spaces_.kernel(), [](pid_t, uint64_t) {}};
  testing::FakeBpfPrograms programs_;
  std::vector<model::Wait> waits_;
  std::vector<model::StackId> samples_;
  capture::OffCpu off_cpu_{kBegin, {}, [this](const model::Wait& wait) { waits_.push_back(wait); }};
  BpfEvidence bpf_{{programs_, spaces_, unwinder_, stacks_, sites_, tasks_, symbolizer_},
                   [this](const capture::RecordHead& head) {
                     return tasks_.find_or_adopt(head.pid, head.tid, head.time);
                   },
                   [this](TimeNs, model::ThreadId, model::StackId stack, uint16_t cpu) {
                     EXPECT_EQ(cpu, 3);
                     samples_.push_back(stack);
                   },
                   off_cpu_,
                   kBegin};
};

constexpr uint64_t kNoReturn = uint64_t{1} << bpf::kNotAReturn;

TEST_F(BpfEvidenceTest, OnlyItsOwnRecordsAreIts) {
  auto own = wait(1, 2);
  EXPECT_TRUE(BpfEvidence::is_record(bytes_of(own)));
  EXPECT_FALSE(BpfEvidence::is_record(bytes_of(own).first(8))) << "too short to tell";
  own.head.type = PERF_RECORD_SAMPLE;
  EXPECT_FALSE(BpfEvidence::is_record(bytes_of(own)));
}

TEST_F(BpfEvidenceTest, AWaitHasItsTimesStackCallWakerAndOwner) {
  EXPECT_TRUE(stack(1, {(kCode + 0x10) | kNoReturn, kCode + 0x20}));
  EXPECT_TRUE(stack(2, {(kCode + 0x50) | kNoReturn}));
  auto record = wait(2000, 9000);
  record.user_stack = 1;
  record.syscall = SYS_futex;
  record.arg = 0x7f;
  record.woken = 8000;
  record.waker_tid = kPid + 1;
  record.waker_stack = 2;
  record.owner = kPid + 1;
  EXPECT_TRUE(handle(record));
  ASSERT_EQ(waits_.size(), 1u);
  const model::Wait& got = waits_[0];
  EXPECT_EQ(got.start, 2000);
  EXPECT_EQ(got.duration_ns, 7000);
  EXPECT_EQ(got.runqueue_ns, 1000);
  EXPECT_EQ(got.thread, main_);
  EXPECT_EQ(got.syscall, SYS_futex);
  EXPECT_EQ(got.arg, 0x7fu);
  EXPECT_EQ(got.waker, other_);
  EXPECT_EQ(got.owner, other_);
  EXPECT_THAT(sink_.addresses(got.stack), ElementsAre(0x1010, 0x101f));
  EXPECT_THAT(sink_.addresses(got.waker_stack), ElementsAre(0x1050));
}

TEST_F(BpfEvidenceTest, AStackWhoseRecordWasLostSaysSo) {
  auto record = wait(2000, 9000);
  record.user_stack = 77;
  EXPECT_TRUE(handle(record));
  EXPECT_THAT(sink_.addresses(waits_.at(0).stack),
              ElementsAre(static_cast<uint64_t>(StackEnd::lost)));
}

TEST_F(BpfEvidenceTest, AnOwnerOrWakerOfAnotherTargetIsNobodyKnown) {
  auto record = wait(2000, 9000);
  record.woken = 8000;
  record.waker_tid = 4711;
  record.owner = 4711;
  EXPECT_TRUE(handle(record));
  EXPECT_EQ(waits_.at(0).waker, model::Wait::kNoWaker);
  EXPECT_EQ(waits_.at(0).owner, model::Wait::kNoOwner);
  auto own = wait(10'000, 11'000);
  own.owner = kPid;  // what a mutex names may be stale: a thread does not wait for itself
  EXPECT_TRUE(handle(own));
  EXPECT_EQ(waits_.at(1).owner, model::Wait::kNoOwner);
}

TEST_F(BpfEvidenceTest, TheTracingsOwnFramesAreTakenOffTheKernelsPart) {
  symbolizer_.name(spaces_.kernel(), 0xf200 - 1, "__schedule");
  stack(1, {(kCode + 0x10) | kNoReturn});
  EXPECT_TRUE(kernel(5, {0xf100, 0xf200, 0xf300}));
  sample(1, 5, 2000);
  EXPECT_THAT(sink_.addresses(samples_.at(0)), ElementsAre(0xf200, 0xf300 - 1, 0x1010));
  EXPECT_TRUE(kernel(6, {0xf100, 0xf300})) << "no scheduler in it: all of it counts";
  stack(1, {(kCode + 0x10) | kNoReturn});
  sample(1, 6, 3000);
  EXPECT_THAT(sink_.addresses(samples_.at(1)), ElementsAre(0xf100, 0xf300 - 1, 0x1010));
}

TEST_F(BpfEvidenceTest, WhatLiesOutsideTheWindowDoesNotCount) {
  stack(1, {kCode});
  sample(1, 0, kBegin - 1);
  EXPECT_TRUE(samples_.empty());
  EXPECT_TRUE(handle(wait(10, kBegin - 1)));
  EXPECT_TRUE(handle(wait(kEnd + 1, kEnd + 5)));
  EXPECT_TRUE(waits_.empty());
  auto before = wait(10, 5000);  // it left before the window began
  before.user_stack = 1;
  EXPECT_TRUE(handle(before));
  ASSERT_EQ(waits_.size(), 1u);
  EXPECT_EQ(waits_[0].start, kBegin);
  EXPECT_TRUE(waits_[0].has(model::WaitFlag::open_start));
}

TEST_F(BpfEvidenceTest, AReplacedStackIsForgottenOnlyAfterAWhile) {
  stack(1, {(kCode + 0x10) | kNoReturn});
  stack(2, {(kCode + 0x20) | kNoReturn}, kBegin, 1);
  auto soon = wait(kBegin + 5, kBegin + kNsPerSecond);
  soon.user_stack = 1;
  EXPECT_TRUE(handle(soon));
  EXPECT_THAT(sink_.addresses(waits_.at(0).stack), ElementsAre(0x1010)) << "a wake-up under way";
  auto late = wait(20 * kNsPerSecond, 21 * kNsPerSecond);
  late.user_stack = 1;
  EXPECT_TRUE(handle(late));
  EXPECT_THAT(sink_.addresses(waits_.at(1).stack),
              ElementsAre(static_cast<uint64_t>(StackEnd::lost)));
}

TEST_F(BpfEvidenceTest, WhatTheKernelCouldNotWalkIsWalkedHere) {
  static auto raw = record<bpf::raw_record>(bpf::kRecordRaw, kBegin);
  raw.id = 9;
  raw.tgid = raw.tid = kPid;
  raw.regs.ip = kCode + 0x70;
  raw.regs.di = 42;
  raw.copy_bytes = 128;
  walk_finds({kCode + 0x70});
  EXPECT_TRUE(bpf_.handle(bytes_of(raw).first(offsetof(bpf::raw_record, copy) + 128), kEnd));
  EXPECT_EQ(unwinder_.last_copy_bytes, 128u);
  EXPECT_EQ(unwinder_.last_registers.ip(), kCode + 0x70);
  EXPECT_EQ(unwinder_.last_registers.value[model::kRegRdi], 42u);
  sample(9, 0, 2000);
  EXPECT_THAT(sink_.addresses(samples_.at(0)), ElementsAre(0x1070));
  EXPECT_EQ(bpf_.raw_stacks(), 1u);
}

TEST_F(BpfEvidenceTest, CheckModeComparesBothWalks) {
  programs_.truth = true;
  static auto raw = record<bpf::raw_record>(bpf::kRecordRaw, kBegin);
  raw.tgid = raw.tid = kPid;
  raw.flags = bpf::kStackTruth;
  auto compare = [&](uint32_t id) {
    raw.id = id;
    EXPECT_TRUE(bpf_.handle(bytes_of(raw).first(offsetof(bpf::raw_record, copy)), kEnd));
  };
  walk_finds({kCode + 0x10, kCode + 0x20});
  stack(1, {(kCode + 0x10) | kNoReturn, kCode + 0x20});
  compare(1);
  EXPECT_EQ(bpf_.truth().compared, 1u);
  EXPECT_TRUE(bpf_.truth().differences.empty());
  stack(2, {(kCode + 0x10) | kNoReturn, kCode + 0x30});
  compare(2);
  EXPECT_EQ(bpf_.truth().differences.at("other frames"), 1u);
  EXPECT_THAT(bpf_.truth().first_difference, ::testing::HasSubstr("10030"));
  compare(3);
  EXPECT_EQ(bpf_.truth().compared, 2u) << "there was no such walk";
}

// Records come through memory that only the kernel writes, but are read as if it were not so.
TEST_F(BpfEvidenceTest, RecordsWhoseSizesDoNotFitAreRefused) {
  auto whole = wait(2000, 9000);
  EXPECT_FALSE(bpf_.handle(bytes_of(whole).first(sizeof whole - 8), kEnd));
  static auto stack = record<bpf::stack_record>(bpf::kRecordStack, kBegin);
  constexpr size_t kFixed = offsetof(bpf::stack_record, pcs);
  stack.count = 3;
  EXPECT_FALSE(bpf_.handle(bytes_of(stack).first(kFixed + 16), kEnd)) << "two of three frames";
  EXPECT_FALSE(bpf_.handle(bytes_of(stack).first(kFixed - 8), kEnd));
  stack.count = bpf::kMostFrames + 1;
  EXPECT_FALSE(bpf_.handle(bytes_of(stack), kEnd));
  auto kernel = record<bpf::kernel_record>(bpf::kRecordKernel, kBegin);
  kernel.count = bpf::kKernelFrames + 1;
  EXPECT_FALSE(handle(kernel));
  static auto raw = record<bpf::raw_record>(bpf::kRecordRaw, kBegin);
  raw.copy_bytes = 129;
  EXPECT_FALSE(bpf_.handle(bytes_of(raw).first(offsetof(bpf::raw_record, copy) + 128), kEnd));
  auto unknown = wait(2000, 9000);
  unknown.head.type = bpf::kRecordKernel + 1;
  EXPECT_FALSE(handle(unknown));
  EXPECT_TRUE(waits_.empty());
  EXPECT_EQ(bpf_.stacks(), 0u);
}

TEST_F(BpfEvidenceTest, OpenWaitsAreToldAsTheyStandAndAtTheEnd) {
  auto open = wait(5000, 0);
  open.flags = bpf::kWaitOpen;
  open.syscall = SYS_epoll_wait;
  open.arg = 4;
  auto preempted = wait(6000, 0);
  preempted.tid = kPid + 1;
  preempted.flags = bpf::kWaitOpen | bpf::kWaitPreempted;
  auto strange = wait(6000, 0);
  strange.tid = 4711;
  strange.flags = bpf::kWaitOpen;
  programs_.waits = {open, preempted, strange};
  std::vector<model::Wait> seen;
  bpf_.for_each_open_wait(8000, [&](const model::Wait& wait) { seen.push_back(wait); });
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].duration_ns, 3000);
  EXPECT_EQ(seen[0].syscall, SYS_epoll_wait);
  EXPECT_EQ(seen[0].runqueue_ns, 0);
  EXPECT_TRUE(seen[0].has(model::WaitFlag::open_end));
  EXPECT_EQ(seen[1].runqueue_ns, 2000) << "it waits for a CPU";
  bpf_.take_open_waits(9000);
  off_cpu_.finish(9000, [](model::ThreadId) { return false; });
  ASSERT_EQ(waits_.size(), 2u);
  for (const model::Wait& wait : waits_) EXPECT_EQ(wait.start + wait.duration_ns, 9000);
}

}  // namespace
}  // namespace assay::evidence
