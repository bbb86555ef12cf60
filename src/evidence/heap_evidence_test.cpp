#include "evidence/heap_evidence.h"

#include <limits>

#include "evidence/testing/evidence_fixture.h"

namespace assay::evidence {
namespace {

using ::testing::ElementsAre;

class HeapEvidenceTest : public testing::EvidenceTest {
 protected:
  HeapEvidenceTest() {
    main_ = tasks_.add(kPid, kPid);
    worker_ = tasks_.add(kPid, kPid + 1);
  }
  void alloc(uint64_t address, uint64_t size, uint32_t tid = kPid, uint64_t rate = 1) {
    capture::HeapRecord record;
    record.time = ++time_;
    record.address = address;
    record.tid = tid;
    record.size_bytes = size;
    record.rate_bytes = rate;
    record.complete = complete_;
    record.pcs = pcs_;
    heap_.add(kPid, record);
  }
  void free(uint64_t address, uint32_t tid = kPid) {
    capture::HeapRecord record;
    record.is_free = true;
    record.time = ++time_;
    record.address = address;
    record.tid = tid;
    heap_.add(kPid, record);
  }

  model::ThreadId main_, worker_;
  TimeNs time_ = 100;
  bool complete_ = true;
  std::vector<uint64_t> pcs_{kCode + 0x21, kCode + 0x41};
  HotSource hot_;
  HeapEvidence heap_{{proc_, stacks_, tasks_, sink_, hot_}};
};

TEST_F(HeapEvidenceTest, AnAllocationAndItsFreeHaveTheSameNumber) {
  alloc(0xa000, 100);
  alloc(0xb000, 200, kPid + 1);
  free(0xb000);
  ASSERT_EQ(sink_.allocs.size(), 2u);
  EXPECT_EQ(sink_.allocs[0].id, 0u);
  EXPECT_EQ(sink_.allocs[1].thread, worker_);
  EXPECT_EQ(sink_.allocs[1].size_bytes, 200u);
  EXPECT_THAT(sink_.addresses(sink_.allocs[0].stack), ElementsAre(0x1020, 0x1040));
  ASSERT_EQ(sink_.frees.size(), 1u);
  EXPECT_EQ(sink_.frees[0].id, sink_.allocs[1].id);
  EXPECT_EQ(sink_.frees[0].thread, main_) << "who freed it, not who allocated it";
  EXPECT_EQ(heap_.counts().allocations, 2u);
  EXPECT_EQ(heap_.counts().frees, 1u);
  EXPECT_EQ(heap_.counts().live_bytes, 100);
}

TEST_F(HeapEvidenceTest, AnAddressThatIsGivenOutAgainEndsItsFormerHolder) {
  alloc(0xa000, 100);
  alloc(0xa000, 50);
  ASSERT_EQ(sink_.frees.size(), 1u) << "its free was lost";
  EXPECT_EQ(sink_.frees[0].id, 0u);
  EXPECT_EQ(heap_.counts().live_bytes, 50);
}

TEST_F(HeapEvidenceTest, AFreeOfWhatWasNeverSampledIsNothing) {
  free(0xdead);
  alloc(0xa000, 100);
  free(0xa000);
  free(0xa000);
  EXPECT_EQ(sink_.frees.size(), 1u);
  EXPECT_EQ(heap_.counts().live_bytes, 0);
}

TEST_F(HeapEvidenceTest, SnapshotsTellWhatIsLiveByItsWeight) {
  alloc(0xa000, 1024, kPid,
        1024);  // one of every 1 − 1/e is sampled: it stands for more than itself
  heap_.take_snapshots(500);
  ASSERT_EQ(sink_.snapshots.size(), 1u);
  EXPECT_EQ(sink_.snapshots[0].process, *tasks_.process(kPid));
  EXPECT_EQ(sink_.snapshots[0].time, 500);
  EXPECT_EQ(sink_.snapshots[0].samples, 1);
  EXPECT_NEAR(static_cast<double>(sink_.snapshots[0].live_bytes), 1024 / 0.63212, 1);
  free(0xa000);
  heap_.take_snapshots(600);
  EXPECT_EQ(sink_.snapshots[1].live_bytes, 0);
  EXPECT_EQ(sink_.snapshots[1].samples, 0);
}

// A target can tell of allocations that are larger than any memory.
TEST_F(HeapEvidenceTest, SumsBeyondAllNumbersStayAtTheLargest) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  for (uint64_t i = 0; i < 5; ++i)
    alloc(0xa000 + i, kMost >> (i % 2), kPid, i % 2 == 0 ? 1 : kMost);
  heap_.take_snapshots(500);
  ASSERT_EQ(sink_.snapshots.size(), 1u);
  EXPECT_EQ(sink_.snapshots[0].live_bytes, std::numeric_limits<int64_t>::max());
  EXPECT_GE(sink_.snapshots[0].live_objects, 5);
  EXPECT_EQ(heap_.counts().live_bytes, std::numeric_limits<int64_t>::max());
  for (uint64_t i = 0; i < 5; ++i) free(0xa000 + i);
  EXPECT_GE(heap_.counts().live_bytes, 0);
}

TEST_F(HeapEvidenceTest, AnotherProgramInTheSameProcessStartsWithAnEmptyHeap) {
  alloc(0xa000, 100);
  heap_.forget(kPid);
  free(0xa000);
  EXPECT_TRUE(sink_.frees.empty());
}

TEST_F(HeapEvidenceTest, AStackThatIsNotCompleteSaysWhy) {
  complete_ = false;
  alloc(0xa000, 1);
  EXPECT_EQ(sink_.addresses(sink_.allocs[0].stack).back(),
            static_cast<uint64_t>(model::StackEnd::no_unwind_info));
  pcs_.assign(192, kCode + 0x21);
  alloc(0xb000, 1);
  EXPECT_EQ(sink_.addresses(sink_.allocs[1].stack).back(),
            static_cast<uint64_t>(model::StackEnd::too_deep));
}

TEST_F(HeapEvidenceTest, WhatIsNotTheTargetsIsLeftOut) {
  tasks_.on_exit(kPid, kPid, 1);
  tasks_.on_exit(kPid, kPid + 1, 1);
  alloc(0xa000, 100);
  heap_.take_snapshots(500);
  EXPECT_TRUE(sink_.allocs.empty());
  EXPECT_TRUE(sink_.snapshots.empty());
}

TEST_F(HeapEvidenceTest, InAContainerThreadsAreFoundByTheirInnerNumber) {
  tree_.write("5000070/status",
              "Name:\tserver\nTgid:\t5000070\nPid:\t5000070\nNSpid:\t5000070\t1\n");
  tree_.write("5000070/task/5000070/status", "Tgid:\t5000070\nPid:\t5000070\nNSpid:\t5000070\t1\n");
  tree_.write("5000070/task/5000071/status", "Tgid:\t5000070\nPid:\t5000071\nNSpid:\t5000071\t9\n");
  alloc(0xa000, 100, 9);
  alloc(0xb000, 100, 1);
  alloc(0xc000, 100, 33);  // ended before it could be looked up
  ASSERT_EQ(sink_.allocs.size(), 3u);
  EXPECT_EQ(sink_.allocs[0].thread, worker_);
  EXPECT_EQ(sink_.allocs[1].thread, main_);
  EXPECT_EQ(sink_.allocs[2].thread, main_) << "taken for the first one";
}

}  // namespace
}  // namespace assay::evidence
