// What the BPF programs make of switches, wake-ups, samples, forks and exits, and their cache of
// walks.
#include <gmock/gmock.h>
#include <sys/syscall.h>

#include "capture/bpf/testing/programs_fixture.h"

namespace assay::capture {
namespace {

using namespace fake;  // the made-up program's functions and rules
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class BpfEvents : public ProgramsFixture {};

TEST_F(BpfEvents, AWaitHasItsTimesItsCallAndItsStack) {
  put_short_stack();
  registers().orig_ax = SYS_read;
  registers().di = 7;
  __u64 in_kernel[] = {0xffffffff81000001, 0xffffffff81000002};
  host_set_kernel_stack(in_kernel, 2);
  leave(1000);
  come_back(5000);
  Records records = take();
  ASSERT_THAT(records.waits, SizeIs(1));
  const bpf::wait_record& wait = records.waits[0];
  EXPECT_EQ(wait.out, 1000u);
  EXPECT_EQ(wait.head.time, 5000u);
  EXPECT_EQ(wait.syscall, SYS_read);
  EXPECT_EQ(wait.arg, 7u);
  EXPECT_EQ(wait.flags, 0);
  EXPECT_EQ(wait.woken, 0u);
  EXPECT_THAT(records.pcs.at(wait.user_stack), ElementsAre(in(two_words) | kLeaf, in(root)));
  ASSERT_THAT(records.kernels, SizeIs(1));
  EXPECT_EQ(records.kernels[0].id, wait.kernel_stack);
  EXPECT_EQ(records.kernels[0].count, 2u);
}

// The scheduler's clock is 500,000 behind. A wake-up took the CPU at once: the clock stood still
// from then on, and the kernel counts the time until the switch as running.
TEST_F(BpfEvents, RunQueueAndRunningAreTheKernelsOwn) {
  put_short_stack();
  host_count_delays();
  host_set_scheduler_clock(500'000);
  leave(1'000'000);
  host_set_scheduler_clock(503'000);
  host_set_queued(0, 0, 502'000);
  come_back(1'007'000);
  bpf::wait_record wait = take().waits.at(0);
  EXPECT_EQ(wait.out, 1'000'000u);
  EXPECT_EQ(wait.head.time, 1'007'000u);
  EXPECT_NEAR(static_cast<double>(wait.came), 1'003'000, 5);
  EXPECT_EQ(wait.queued, 1'000u);
  EXPECT_TRUE(wait.flags & bpf::kWaitQueued);
  // Moved between CPUs while it waited: the first queue's part is counted already.
  host_set_queued(0, 1'000, 0);
  host_set_scheduler_clock(510'000);
  leave(1'010'000);
  host_set_queued(0, 5'000, 519'000);
  host_set_scheduler_clock(520'000);
  come_back(1'020'000);
  EXPECT_EQ(take().waits.at(0).queued, 5'000u);
}

// A thread that was asleep when it was first listed, and whose switch-in was not shown: it did not
// run all the time.
TEST_F(BpfEvents, AThreadThatIsFirstSeenLeavingHadWaitedBefore) {
  host_set_task(3, kPid + 3, kPid, 0);
  host_set_ran(3, 70'000);
  host_watch(kPid, code_);
  host_set_ran(3, 72'000);
  host_set_time(1'000'000);
  host_switch(3, 5, 0, 1);
  bpf::wait_record wait = take().waits.at(0);
  EXPECT_EQ(wait.out, 0u);
  EXPECT_EQ(wait.came, 998'000u);
}

TEST_F(BpfEvents, AThreadThatEndsHasEndedItsWait) {
  put_short_stack();
  leave(1000);
  host_set_time(3000);
  host_wake(1, 0, 0);
  host_set_time(4000);
  host_exit(0, 1);
  bpf::wait_record wait = take().waits.at(0);
  EXPECT_EQ(wait.out, 1000u);
  EXPECT_EQ(wait.came, 3000u) << "its switch-in was not seen; the wake-up was";
}

TEST_F(BpfEvents, AnUnchangedStackIsNotWalkedAgain) {
  put_short_stack();
  uint64_t time = 1000;
  std::vector<uint32_t> ids;
  size_t stacks = 0;
  auto wait_once = [&] {
    leave(time);
    come_back(time + 10);
    time += 100;
    Records records = take();
    stacks = records.stacks.size();
    return records.waits.at(0).user_stack;
  };
  uint32_t first = wait_once();
  EXPECT_EQ(stacks, 1u);
  EXPECT_EQ(wait_once(), first);
  EXPECT_EQ(stacks, 0u);
  EXPECT_EQ(host_counter(bpf::kCountHits), 1u);
  put(500, 0x1234);  // the walk did not depend on it
  map_stack();
  EXPECT_EQ(wait_once(), first);
  registers().bp = 0x99;  // nor on this register
  EXPECT_EQ(wait_once(), first);
  put(1, in(one_word));
  put(2, in(root));
  map_stack();
  EXPECT_NE(wait_once(), first) << "the same place, called from elsewhere";
  registers().orig_ax = SYS_poll;
  uint32_t in_poll = wait_once();
  EXPECT_EQ(stacks, 1u) << "another system call has a kernel stack of its own";
  EXPECT_EQ(wait_once(), in_poll);
  lists_.forget(kPid, 0);
  host_watch(kPid, 0);
  wait_once();
  EXPECT_EQ(host_counter(bpf::kCountWalks), 4u) << "new mappings, new walk";
}

TEST_F(BpfEvents, AWayThatIsReusedTellsWhichStackIsGone) {
  put_short_stack();
  std::map<uint32_t, uint32_t> replaced;
  for (uint64_t i = 0; i < bpf::kWays + 3; ++i) {
    registers().orig_ax = 50 + i;
    leave(1000 + 100 * i);
    come_back(1010 + 100 * i);
    for (const auto& [id, stack] : take().stacks) replaced[id] = stack.replaces;
  }
  ASSERT_EQ(replaced.size(), bpf::kWays + 3u);
  size_t reused = 0;
  for (auto [id, earlier] : replaced) reused += earlier != 0 && replaced.contains(earlier) ? 1 : 0;
  EXPECT_EQ(reused, 3u);
}

TEST_F(BpfEvents, PreemptionAndDeathAreToldApart) {
  put_short_stack();
  leave(1000, 0, true);
  come_back(2000);
  leave(3000, 0);  // still runnable, so it was pushed off the CPU
  come_back(4000);
  leave(5000, 0x80);  // dead
  Records records = take();
  ASSERT_THAT(records.waits, SizeIs(2));
  EXPECT_EQ(records.waits[0].flags, bpf::kWaitPreempted);
  EXPECT_EQ(records.waits[1].flags, bpf::kWaitPreempted);
}

TEST_F(BpfEvents, AMutexNamesItsOwner) {
  struct {
    uint32_t lock = 2, count = 0, owner = 4242;
  } mutex;
  put_short_stack();
  host_map(0x10000, &mutex, sizeof mutex);
  registers().orig_ax = SYS_futex;
  registers().di = 0x10000;
  auto owner_of = [&](uint64_t operation, uint64_t value) {
    registers().si = operation;
    registers().dx = value;
    leave(1000);
    come_back(2000);
    return take().waits.at(0).owner;
  };
  EXPECT_EQ(owner_of(0x80, 2), 4242u) << "FUTEX_WAIT, private, of a lock that is waited for";
  EXPECT_EQ(owner_of(9, 2), 4242u) << "FUTEX_WAIT_BITSET";
  EXPECT_EQ(owner_of(0x80, 1), 0u) << "a condition variable, say";
  EXPECT_EQ(owner_of(1, 2), 0u) << "FUTEX_WAKE";
  registers().di = 0x20000;
  EXPECT_EQ(owner_of(0x80, 2), 0u) << "not to be read";
}

TEST_F(BpfEvents, AWakeUpHasItsWaker) {
  put_short_stack();
  registers(1) = registers(0);
  registers(1).orig_ax = SYS_futex;
  leave(1000);
  host_set_time(3000);
  host_wake(1, 0, 0);
  host_set_time(3500);
  host_wake(2, 0, 0);  // it is awake already
  come_back(4000);
  Records records = take();
  ASSERT_THAT(records.waits, SizeIs(1));
  EXPECT_EQ(records.waits[0].woken, 3000u);
  EXPECT_EQ(records.waits[0].waker_tid, 101u);
  EXPECT_THAT(records.pcs.at(records.waits[0].waker_stack),
              ElementsAre(in(two_words) | kLeaf, in(root)));
}

TEST_F(BpfEvents, AnInterruptIsNotTheActOfWhomItHit) {
  put_short_stack();
  auto waker_of = [&](int waker, uint64_t call, bool by_interrupt) {
    registers(waker) = registers(0);
    registers(waker).orig_ax = call;
    leave(1000);
    host_set_time(3000);
    host_wake(waker, 0, by_interrupt);
    come_back(4000);
    const auto waits = take().waits;
    EXPECT_EQ(waits.at(0).woken, 3000u) << "that it was woken is true in any case";
    return waits.at(0).waker_tid;
  };
  EXPECT_EQ(waker_of(1, SYS_futex, false), 101u);
  EXPECT_EQ(waker_of(1, SYS_futex, true), 0u);
  EXPECT_EQ(waker_of(1, static_cast<uint64_t>(-1), false), 0u) << "it was in user code";
  EXPECT_EQ(waker_of(1, SYS_sendto, true), 101u) << "loopback traffic";
  host_set_task(1, 101, kPid, kHostIsKernelThread);
  EXPECT_EQ(waker_of(1, SYS_futex, false), 0u);
  EXPECT_EQ(waker_of(5, SYS_futex, false), 0u) << "not of the target";
}

TEST_F(BpfEvents, AnEarlierWakeUpDoesNotBelongToThisSleep) {
  put_short_stack();
  host_set_time(1000);
  host_wake(1, 0, 0);
  leave(1000 + 30'000);
  come_back(50'000);
  EXPECT_EQ(take().waits.at(0).woken, 0u);
  host_set_time(60'000);
  host_wake(1, 0, 0);
  leave(60'000 + 10'000);
  come_back(80'000);
  EXPECT_EQ(take().waits.at(0).woken, 60'000u) << "woken while it was on its way to sleep";
}

TEST_F(BpfEvents, ASwitchInThatWasNotSeenIsComputed) {
  put_short_stack();
  host_set_ran(0, 100);
  leave(1000);
  host_set_ran(0, 100 + 700);  // it has run since
  leave(5000);
  Records records = take();
  ASSERT_THAT(records.waits, SizeIs(1));
  EXPECT_EQ(records.waits[0].came, 4300u);
  EXPECT_EQ(host_counter(bpf::kCountMissedIn), 1u);
}

TEST_F(BpfEvents, OtherPeoplesThreadsAreLeftOut) {
  put_short_stack();
  host_set_task(3, 300, 300, 0);
  registers(3) = registers(0);
  host_set_time(1000);
  host_switch(3, 5, 0, 1);
  host_switch(5, 3, 0, 0);
  host_sample(3);
  Records records = take();
  EXPECT_THAT(records.waits, IsEmpty());
  EXPECT_THAT(records.samples, IsEmpty());
  EXPECT_EQ(host_counter(bpf::kCountSwitches), 0u);
}

TEST_F(BpfEvents, ChildrenAreFollowedFromTheirBirthToTheirEnd) {
  put_short_stack();
  host_set_task(3, 300, 300, 0);
  registers(3) = registers(0);
  host_fork(0, 3);
  __u64 code = 0;
  ASSERT_TRUE(host_is_watched(300, &code));
  EXPECT_EQ(code, code_) << "it has its parent's mappings";
  host_set_time(1000);
  host_sample(3);
  Records records = take();
  ASSERT_THAT(records.samples, SizeIs(1));
  EXPECT_EQ(records.samples[0].tgid, 300u);
  EXPECT_THAT(records.stacks, SizeIs(1));
  host_exec(3);
  ASSERT_TRUE(host_is_watched(300, &code));
  EXPECT_EQ(code, 0u) << "its mappings are not known yet";
  host_sample(3);
  records = take();
  ASSERT_THAT(records.raws, SizeIs(1));
  EXPECT_EQ(records.raws[0].end, bpf::kEndNoTables);
  host_exit(3, 1);
  EXPECT_TRUE(host_is_watched(300, &code)) << "other threads of it live on";
  host_exit(3, 0);
  EXPECT_FALSE(host_is_watched(300, &code));
}

TEST_F(BpfEvents, OpenWaitsAreListed) {
  put_short_stack();
  bpf::wait_record wait{};
  EXPECT_EQ(host_list_open_wait(0, &wait, sizeof wait), 0u) << "it runs";
  registers().orig_ax = SYS_poll;
  leave(1000);
  ASSERT_EQ(host_list_open_wait(0, &wait, sizeof wait), sizeof wait);
  EXPECT_EQ(wait.out, 1000u);
  EXPECT_EQ(wait.syscall, SYS_poll);
  EXPECT_TRUE(wait.flags & bpf::kWaitOpen);
  host_set_time(9000);
  host_set_ran(0, 5000);  // its switch-in was not seen
  ASSERT_EQ(host_list_open_wait(0, &wait, sizeof wait), sizeof wait);
  EXPECT_FALSE(wait.flags & bpf::kWaitOpen);
  EXPECT_EQ(wait.head.time, 4000u);
}

TEST_F(BpfEvents, AFullRingIsCounted) {
  put_short_stack();
  host_set_ring_room(0);
  leave(1000);
  come_back(2000);
  EXPECT_EQ(host_counter(bpf::kCountRingFull), 2u);
  EXPECT_EQ(host_counter(bpf::kCountStackLost), 1u) << "of them, stacks";
  host_set_ring_room(kHostRingBytes);
  leave(3000);
  come_back(4000);
  EXPECT_THAT(take().stacks, SizeIs(1)) << "a stack that was lost is not taken for known";
}

TEST_F(BpfEvents, RawRecordsAreLimitedInTime) {
  map_stack();
  registers().ip = 0x900000;
  host_set_time(1'000'000'000);
  size_t raws = 0;
  for (int i = 0; i < 400; ++i) {
    host_sample(0);
    raws += take().raws.size();
  }
  EXPECT_EQ(raws, 300u);
  EXPECT_EQ(host_counter(bpf::kCountRawLimited), 100u);
  host_set_time(1'200'000'000);
  host_sample(0);
  EXPECT_THAT(take().raws, SizeIs(1)) << "the next tenth of a second has its own";
}

}  // namespace
}  // namespace assay::capture
