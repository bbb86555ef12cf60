#include "capture/off_cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::capture {
namespace {

using model::StackId;
using model::ThreadId;
using model::Wait;
using model::WaitFlag;

constexpr StackId kLost{99};
constexpr ThreadId kA{0}, kB{1};

class OffCpuTest : public testing::Test {
 protected:
  OffCpu off_cpu{1000, kLost, [this](const Wait& wait) { waits.push_back(wait); }};
  std::vector<Wait> waits;

  static WaitSite site(uint32_t stack, uint16_t syscall = 202, uint64_t arg = 7) {
    return WaitSite{StackId{stack}, syscall, arg, model::FdKind::none};
  }
  void finish(TimeNs end, bool ran = false) {
    off_cpu.finish(end, [ran](ThreadId) { return ran; });
  }
};

TEST_F(OffCpuTest, ABlockedWaitHasItsStackDurationAndReason) {
  off_cpu.existing_thread(kA, 0);
  off_cpu.stack_at_switch(kA, 1100, site(5));
  off_cpu.switched_out(kA, 1102, false);
  off_cpu.switched_in(kA, 1500);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].start, 1102);
  EXPECT_EQ(waits[0].duration_ns, 398);
  EXPECT_EQ(waits[0].stack, StackId{5});
  EXPECT_EQ(waits[0].syscall, 202);
  EXPECT_EQ(waits[0].arg, 7u);
  EXPECT_EQ(waits[0].flags, 0);
  finish(2000);
  EXPECT_EQ(waits.size(), 1u) << "it ran until the end";
}

TEST_F(OffCpuTest, PreemptionIsRunQueueTimeAndNotInASyscall) {
  off_cpu.existing_thread(kA, 0);
  off_cpu.stack_at_switch(kA, 1100, site(5));
  off_cpu.switched_out(kA, 1101, true);
  off_cpu.switched_in(kA, 1201);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_TRUE(waits[0].has(WaitFlag::preempted));
  EXPECT_EQ(waits[0].runqueue_ns, 100);
  EXPECT_EQ(waits[0].syscall, model::kNoSyscall);
}

TEST_F(OffCpuTest, AWakeUpSplitsAWait) {
  off_cpu.existing_thread(kA, 0);
  off_cpu.existing_thread(kB, 0);
  off_cpu.stack_at_switch(kA, 1100, site(5));
  off_cpu.switched_out(kA, 1101, false);
  off_cpu.woken(kA, 1401, kB);
  off_cpu.woken(kA, 1450, kA);  // a second wake-up of a woken thread changes nothing
  off_cpu.switched_in(kA, 1501);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_TRUE(waits[0].has(WaitFlag::runqueue_known));
  EXPECT_EQ(waits[0].runqueue_ns, 100);
  EXPECT_EQ(waits[0].waker, kB);
}

TEST_F(OffCpuTest, WhatTheKernelDoesNotCountAsQueuedIsTheWakeUp) {
  off_cpu.existing_thread(kA, 0);
  off_cpu.stack_at_switch(kA, 1100, site(5));
  off_cpu.switched_out(kA, 1101, false);
  off_cpu.woken(kA, 1401, kB);
  off_cpu.switched_in(kA, 1501, 30);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].runqueue_ns, 30);
  EXPECT_EQ(waits[0].wakeup_ns, 70);
  off_cpu.switched_out(kA, 1600, false);
  off_cpu.woken(kA, 1650, kB);
  off_cpu.switched_in(kA, 1700, 80);  // more than has passed since the wake-up
  EXPECT_EQ(waits[1].runqueue_ns, 50);
  EXPECT_EQ(waits[1].wakeup_ns, 0);
  off_cpu.switched_out(kA, 1800, false);
  off_cpu.switched_in(kA, 1900, 40);  // the wake-up itself was not seen
  EXPECT_TRUE(waits[2].has(WaitFlag::runqueue_known));
  EXPECT_EQ(waits[2].runqueue_ns, 40);
  off_cpu.switched_out(kA, 2000, true);
  off_cpu.switched_in(kA, 2100, 10);
  EXPECT_EQ(waits[3].runqueue_ns, 100) << "a preempted thread does nothing but queue";
  EXPECT_EQ(waits[3].wakeup_ns, 0);
}

TEST_F(OffCpuTest, AWakeUpThatOvertakesTheSwitchOutCounts) {
  off_cpu.existing_thread(kA, 0);
  off_cpu.switched_in(kA, 1010);
  off_cpu.stack_at_switch(kA, 1100, site(5));
  off_cpu.woken(kA, 1101, kB);
  off_cpu.switched_out(kA, 1102, false);
  off_cpu.switched_in(kA, 1202);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[1].runqueue_ns, 100) << "all of it was runnable";
}

TEST_F(OffCpuTest, AWakeUpOfAnEarlierWaitDoesNotLeakIntoTheNext) {
  off_cpu.existing_thread(kA, 0);
  off_cpu.stack_at_switch(kA, 1100, site(5));
  off_cpu.switched_out(kA, 1101, false);
  off_cpu.woken(kA, 1150, kB);
  off_cpu.switched_in(kA, 1200);
  off_cpu.stack_at_switch(kA, 1300, site(5));
  off_cpu.switched_out(kA, 1301, false);
  off_cpu.switched_in(kA, 1400);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_FALSE(waits[1].has(WaitFlag::runqueue_known));
  EXPECT_EQ(waits[1].waker, Wait::kNoWaker);
}

TEST_F(OffCpuTest, WaitsOpenAtTheEdgesOfTheWindowAreAccounted) {
  off_cpu.existing_thread(kA, 0);
  off_cpu.snapshot(kA, site(8));
  off_cpu.switched_in(kA, 1300);
  off_cpu.stack_at_switch(kA, 1400, site(9));
  off_cpu.switched_out(kA, 1401, false);
  finish(3000);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].start, 1000);
  EXPECT_EQ(waits[0].duration_ns, 300);
  EXPECT_TRUE(waits[0].has(WaitFlag::open_start));
  EXPECT_TRUE(waits[0].has(WaitFlag::stack_snapshot));
  EXPECT_EQ(waits[0].stack, StackId{8});
  EXPECT_EQ(waits[1].duration_ns, 1599);
  EXPECT_TRUE(waits[1].has(WaitFlag::open_end));
  EXPECT_EQ(waits[1].stack, StackId{9});
}

TEST_F(OffCpuTest, AThreadThatNeverSwitchesWaitsOrRunsThroughout) {
  off_cpu.existing_thread(kA, 0);
  off_cpu.snapshot(kA, site(8));
  off_cpu.existing_thread(kB, 0);
  off_cpu.finish(2000, [](ThreadId thread) { return thread == kB; });
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].thread, kA);
  EXPECT_EQ(waits[0].duration_ns, 1000);
  EXPECT_TRUE(waits[0].has(WaitFlag::open_start));
  EXPECT_TRUE(waits[0].has(WaitFlag::open_end));
}

TEST_F(OffCpuTest, AThreadThatWasReadyWhenTheWindowBeganWaitedForACpu) {
  off_cpu.existing_thread(kA, 0, true);
  off_cpu.switched_in(kA, 1300);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_TRUE(waits[0].has(WaitFlag::preempted));
  EXPECT_EQ(waits[0].runqueue_ns, 300);
  off_cpu.stack_at_switch(kA, 1400, site(5));
  off_cpu.switched_out(kA, 1401, false);
  off_cpu.switched_in(kA, 1500);
  EXPECT_FALSE(waits[1].has(WaitFlag::preempted)) << "only that once";
}

TEST_F(OffCpuTest, AThreadWithoutARecordYetIsOpenFromTheBeginning) {
  off_cpu.existing_thread(kA, 0);
  off_cpu.snapshot(kA, site(8));
  std::vector<Wait> open;
  off_cpu.for_each_open_wait(1500, [&](const Wait& wait) { open.push_back(wait); });
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].duration_ns, 500);
  EXPECT_EQ(open[0].stack, StackId{8});
  EXPECT_TRUE(open[0].has(WaitFlag::open_start));
}

TEST_F(OffCpuTest, AThreadHeardOfLateCountsFromThen) {
  EXPECT_FALSE(off_cpu.knows(kA));
  off_cpu.existing_thread(kA, 1600);
  EXPECT_TRUE(off_cpu.knows(kA));
  off_cpu.switched_in(kA, 1700);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].start, 1600);
  EXPECT_EQ(waits[0].duration_ns, 100);
}

TEST_F(OffCpuTest, ANewThreadWaitsForItsFirstCpu) {
  off_cpu.born(kA, 1500);
  off_cpu.switched_in(kA, 1550);
  off_cpu.exited(kA, 1700);
  off_cpu.switched_out(kA, 1701, false);  // the last switch of a dead thread
  finish(2000);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_TRUE(waits[0].has(WaitFlag::new_thread));
  EXPECT_EQ(waits[0].runqueue_ns, 50);
  EXPECT_EQ(off_cpu.counts().lost_stacks, 0u);
}

TEST_F(OffCpuTest, ALostStackIsMarkedNotBorrowedFromAnEarlierWait) {
  off_cpu.existing_thread(kA, 0);
  off_cpu.stack_at_switch(kA, 1100, site(5));
  off_cpu.switched_out(kA, 1101, false);
  off_cpu.switched_in(kA, 1200);
  off_cpu.switched_out(kA, 1300, false);
  off_cpu.switched_in(kA, 1400);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[1].stack, kLost);
  EXPECT_EQ(waits[1].syscall, model::kNoSyscall);
  EXPECT_EQ(off_cpu.counts().lost_stacks, 1u);
}

TEST_F(OffCpuTest, ALostSwitchInIsClosedByTheNextSample) {
  off_cpu.existing_thread(kA, 0);
  off_cpu.stack_at_switch(kA, 1100, site(5));
  off_cpu.switched_out(kA, 1101, false);
  off_cpu.running_sample(kA, 1400);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].duration_ns, 299);
  EXPECT_EQ(off_cpu.counts().unpaired_switches, 1u);
  off_cpu.switched_out(kA, 1500, false);
  off_cpu.switched_in(kA, 1600);
  EXPECT_EQ(waits.back().duration_ns, 100);
}

TEST_F(OffCpuTest, TheWaitsAndTheRunsFillTheWindow) {
  off_cpu.existing_thread(kA, 0);
  TimeNs time = 1000;
  TimeNs ran = 0;
  for (int i = 0; i < 100; ++i) {
    ran += 7;
    time += 7;
    off_cpu.stack_at_switch(kA, time - 1, site(5));
    off_cpu.switched_out(kA, time, i % 3 == 0);
    time += 11;
    off_cpu.switched_in(kA, time);
  }
  finish(time + 13);
  TimeNs waited = 0;
  for (const Wait& wait : waits) waited += wait.duration_ns;
  EXPECT_EQ(waited + ran + 13, time + 13 - 1000);
}

TEST_F(OffCpuTest, OpenWaitsCanBeSeenWithoutEndingThem) {
  off_cpu.existing_thread(kA, 0);
  off_cpu.stack_at_switch(kA, 1100, site(5));
  off_cpu.switched_out(kA, 1101, false);
  std::vector<Wait> open;
  off_cpu.for_each_open_wait(1500, [&](const Wait& wait) { open.push_back(wait); });
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].duration_ns, 399);
  EXPECT_TRUE(open[0].has(WaitFlag::open_end));
  EXPECT_TRUE(waits.empty());
  off_cpu.switched_in(kA, 1700);
  EXPECT_EQ(waits.at(0).duration_ns, 599);
}

}  // namespace
}  // namespace assay::capture
