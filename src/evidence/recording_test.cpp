// Recording, fed with records as the kernel lays them out, of a target that exists in the test
// alone.
#include "evidence/recording.h"

#include <sys/syscall.h>

#include "capture/perf/fake_perf_records.h"
#include "evidence/testing/evidence_fixture.h"

namespace assay::evidence {
namespace {

namespace fake = capture::fake;
using capture::EventKind;
using capture::RecordHead;
using model::LossKind;
using model::WaitFlag;
using ::testing::ElementsAre;
using testing::FakeEvents;

class RecordingTest : public testing::EvidenceTest {
 protected:
  static constexpr TimeNs kBegin = kNsPerSecond, kEnd = 2 * kNsPerSecond;
  static constexpr pid_t kWorker = kPid + 1, kStranger = kPid + 100;

  RecordingTest() {
    main_ = tasks_.add(kPid, kPid);
    worker_ = tasks_.add(kPid, kWorker);
    os::add_process(tree_, {.pid = kPid, .comm = "server", .threads = {{kWorker, "worker"}}});
    walk_finds({kCode + 0x10});
    symbolizer_.name(spaces_.kernel(), kFutexEntry - 1, "__x64_sys_futex");
  }

  Recording& recording() {
    if (!recording_) {
      recording_ = std::make_unique<Recording>(
          Recording::Parts{proc_, events_, spaces_, unwinder_, stacks_, sites_, tasks_, sink_, hot_,
                           data_names_, nullptr, &symbolizer_},
          kBegin);
    }
    return *recording_;
  }
  void finish() {
    recording().consume(std::move(batch_));
    recording().finish(kEnd);
    namer_.finish();
  }

  static RecordHead head(TimeNs time, pid_t tid, uint32_t cpu = 0, pid_t pid = kPid) {
    return {kBegin + time, pid, tid, cpu};
  }
  void feed(TimeNs time, const fake::Bytes& bytes) {
    batch_.entries.push_back({kBegin + time, static_cast<uint32_t>(batch_.bytes.size()),
                              static_cast<uint32_t>(bytes.size())});
    batch_.bytes.insert(batch_.bytes.end(), bytes.begin(), bytes.end());
  }
  void stack_record(EventKind kind, TimeNs time, pid_t tid, fake::Bytes raw = {},
                    uint32_t cpu = 0) {
    fake::StackSample sample{.id = FakeEvents::id_of(kind), .head = head(time, tid, cpu)};
    sample.chain = {PERF_CONTEXT_KERNEL, 0xffffffff81000010, kFutexEntry, PERF_CONTEXT_USER, kCode};
    sample.registers[PERF_REG_X86_DI] = 0x7f40;
    sample.raw = std::move(raw);
    feed(time, fake::stack_sample(sample));
  }
  void running(TimeNs time, pid_t tid) { stack_record(EventKind::on_cpu, time, tid); }
  void switch_to(TimeNs time, pid_t from, pid_t to, bool preempted = false, uint32_t cpu = 0) {
    stack_record(EventKind::off_cpu, time, from, FakeEvents::payload(from, to, preempted), cpu);
  }
  void wake(TimeNs time, pid_t waker, pid_t woken) {
    feed(time, fake::waking_sample(FakeEvents::id_of(EventKind::waking), head(time, waker),
                                   FakeEvents::payload(woken)));
  }
  std::vector<model::Wait> waits_of(model::ThreadId thread) const {
    std::vector<model::Wait> out;
    for (const model::Wait& wait : sink_.waits) {
      if (wait.thread == thread) out.push_back(wait);
    }
    return out;
  }

  static constexpr uint64_t kFutexEntry = 0xffffffff81000100;
  model::ThreadId main_, worker_;
  FakeEvents events_;
  HotSource hot_;
  FrameNamer namer_{symbolizer_, sink_};
  DataNames data_names_{spaces_, tasks_, namer_};
  WaitSites sites_{proc_, symbolizer_, spaces_.kernel(),
                   [this](pid_t pid, uint64_t address) { data_names_.waited_on(pid, address); }};
  capture::Batch batch_;
  std::unique_ptr<Recording> recording_;
};

TEST_F(RecordingTest, AnOnCpuSampleHasItsThreadStackAndWeight) {
  running(100, kWorker);
  finish();
  ASSERT_EQ(sink_.samples.size(), 1u);
  EXPECT_EQ(sink_.samples[0].thread, worker_);
  EXPECT_EQ(sink_.samples[0].time, kBegin + 100);
  EXPECT_EQ(sink_.samples[0].weight_ns, events_.sample_period_ns());
  EXPECT_THAT(sink_.addresses(sink_.samples[0].stack),
              ElementsAre(0xffffffff81000010, kFutexEntry - 1, 0x1010));
  EXPECT_EQ(recording().counts().samples, 1u);
}

TEST_F(RecordingTest, ASwitchEndsOneThreadsTimeAndBeginsTheNextOnes) {
  recording().add_existing_threads();
  running(50, kPid);
  switch_to(100'000, kPid, kWorker);
  wake(700'000, kWorker, kPid);
  switch_to(900'000, kWorker, kPid, true);
  finish();
  auto blocked = waits_of(main_);
  ASSERT_EQ(blocked.size(), 1u);
  EXPECT_EQ(blocked[0].start, kBegin + 100'000);
  EXPECT_EQ(blocked[0].duration_ns, 800'000);
  EXPECT_EQ(blocked[0].runqueue_ns, 200'000) << "since it was woken";
  EXPECT_EQ(blocked[0].waker, worker_);
  EXPECT_EQ(blocked[0].syscall, SYS_futex);
  EXPECT_EQ(blocked[0].arg, 0x7f40u);
  EXPECT_EQ(sink_.addresses(blocked[0].stack).back(), 0x1010u);
  auto preempted = waits_of(worker_);
  ASSERT_EQ(preempted.size(), 2u) << "until it came, and when it had to go";
  EXPECT_TRUE(preempted[0].has(WaitFlag::open_start));
  EXPECT_EQ(preempted[0].start + preempted[0].duration_ns, kBegin + 100'000);
  EXPECT_TRUE(preempted[1].has(WaitFlag::preempted));
  EXPECT_TRUE(preempted[1].has(WaitFlag::open_end));
  EXPECT_EQ(preempted[1].start + preempted[1].duration_ns, kEnd);
  EXPECT_EQ(recording().switches(), 2u);
}

TEST_F(RecordingTest, WithoutTheTracepointSwitchRecordsTellTheTimes) {
  events_.has_switches = false;
  stack_record(EventKind::off_cpu, 100'000, kPid);
  feed(105'000, fake::switch_record(head(105'000, kPid), true));
  feed(400'000, fake::switch_record(head(400'000, kPid), false));
  finish();
  auto waits = waits_of(main_);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].start, kBegin + 100'000) << "when the CPU began to switch, not 5 us later";
  EXPECT_EQ(waits[0].duration_ns, 300'000);
}

TEST_F(RecordingTest, EventsOfOneThreadTellTheirOwnTimes) {
  events_.has_switches = false;
  events_.whole_cpus = false;
  stack_record(EventKind::off_cpu, 100'000, kPid);
  feed(105'000, fake::switch_record(head(105'000, kPid), true));
  feed(400'000, fake::switch_record(head(400'000, kPid), false));
  finish();
  EXPECT_EQ(waits_of(main_).at(0).start, kBegin + 105'000);
}

TEST_F(RecordingTest, ASwitchThatTwoEventsRecordedCountsOnce) {
  running(50, kPid);
  switch_to(100'000, kPid, kStranger);
  stack_record(EventKind::off_cpu_bare, 100'500, kPid, FakeEvents::payload(kPid, kStranger));
  finish();
  EXPECT_EQ(recording().switches(), 1u);
  EXPECT_EQ(waits_of(main_).size(), 1u);
}

TEST_F(RecordingTest, OthersOnTheSameCpusAreNotRecorded) {
  fake::StackSample sample{.id = FakeEvents::id_of(EventKind::on_cpu),
                           .head = head(100, kStranger, 0, kStranger)};
  feed(100, fake::stack_sample(sample));
  wake(200, kStranger, kStranger + 1);
  finish();
  EXPECT_TRUE(sink_.samples.empty());
  EXPECT_TRUE(sink_.waits.empty());
  EXPECT_FALSE(tasks_.contains(kStranger));
}

TEST_F(RecordingTest, ThreadsThatWereNotAnnouncedAreTakenIn) {
  running(100, kWorker + 5);
  finish();
  ASSERT_EQ(sink_.samples.size(), 1u);
  EXPECT_EQ(sink_.samples[0].thread, tasks_.find(kWorker + 5)->thread);
}

TEST_F(RecordingTest, OnlyTheWindowCounts) {
  running(-1, kPid);
  running(kEnd - kBegin + 1, kPid);
  switch_to(kEnd - kBegin + 10, kPid, kWorker);
  finish();
  EXPECT_TRUE(sink_.samples.empty());
  EXPECT_TRUE(sink_.waits.empty()) << "nobody was there before";
}

TEST_F(RecordingTest, AForkedProcessHasItsParentsCodeAndEndsWithItsLastThread) {
  constexpr pid_t kChild = kPid + 7;
  feed(100, fake::fork_record(head(100, kPid), {kChild, kPid, kChild, kPid}));
  fake::StackSample sample{.id = FakeEvents::id_of(EventKind::on_cpu),
                           .head = head(5000, kChild, 0, kChild)};
  sample.registers[PERF_REG_X86_IP] = kCode;
  feed(5000, fake::stack_sample(sample));
  feed(9000, fake::exit_record(head(9000, kChild, 0, kChild), {kChild, kPid, kChild, kPid}));
  finish();
  ASSERT_EQ(sink_.samples.size(), 1u);
  EXPECT_THAT(sink_.addresses(sink_.samples[0].stack), ElementsAre(0x1010)) << "its parent's code";
  ASSERT_EQ(sink_.waits.size(), 1u);
  EXPECT_TRUE(sink_.waits[0].has(WaitFlag::new_thread));
  EXPECT_EQ(sink_.waits[0].start, kBegin + 100);
  EXPECT_EQ(sink_.waits[0].duration_ns, 4900);
  EXPECT_FALSE(tasks_.contains(kChild));
  EXPECT_FALSE(spaces_.knows(kChild));
  EXPECT_THAT(unwinder_.forgotten, ElementsAre(kChild));
}

TEST_F(RecordingTest, ANewImageIsAnotherThreadWithOtherCode) {
  running(50, kPid);
  switch_to(100, kPid, kStranger);
  feed(5000, fake::comm_record(head(5000, kPid), kPid, kPid, "other", true));
  recording().consume(std::move(batch_));
  batch_ = {};
  recording().finish(kEnd);
  EXPECT_NE(tasks_.find(kPid)->thread, main_);
  EXPECT_TRUE(spaces_.of(kPid).all().empty());
  auto waits = waits_of(main_);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].duration_ns, 4900) << "its life ended with the old image";
  EXPECT_TRUE(waits_of(tasks_.find(kPid)->thread).empty()) << "the new one runs";
}

TEST_F(RecordingTest, ARenamedThreadIsToldToTheTasks) {
  feed(50, fake::comm_record(head(50, kWorker), kPid, kWorker, "io-1", false));
  feed(60, fake::comm_record(head(60, kStranger, 0, kStranger), kStranger, kStranger, "x", false));
  finish();
  EXPECT_EQ(tasks_.comms[kWorker], "io-1");
  EXPECT_FALSE(tasks_.comms.contains(kStranger));
}

TEST_F(RecordingTest, EveryLossIsCountedByItsKind) {
  batch_.drained_at = kBegin;
  batch_.ring_losses = {{0, false, 10}, {1, true, 3}};
  batch_.dropped_samples = 4;
  batch_.cut_stacks = 5;
  batch_.malformed = 6;
  batch_.throttled = 7;
  fake::Bytes broken =
      fake::usual_sample(FakeEvents::id_of(EventKind::on_cpu), head(1, kPid), 64, 64);
  broken.resize(32);
  feed(1, broken);
  events_.lost = 20;  // the kernel's own count: 7 more than the rings told
  finish();
  EXPECT_EQ(sink_.lost(LossKind::ring_records), 17u);
  EXPECT_EQ(sink_.lost(LossKind::side_band_records), 3u);
  EXPECT_EQ(sink_.lost(LossKind::dropped_samples), 4u);
  EXPECT_EQ(sink_.lost(LossKind::dropped_stacks), 5u);
  EXPECT_EQ(sink_.lost(LossKind::malformed), 7u);
  EXPECT_EQ(sink_.lost(LossKind::throttled), 7u);
  EXPECT_EQ(recording().counts().lost, 43u);
}

TEST_F(RecordingTest, ARecordThatComesTooLateIsTakenAndCounted) {
  auto consume_at = [&](TimeNs drained) {
    batch_.drained_at = kBegin + drained;
    recording().consume(std::exchange(batch_, {}));
  };
  consume_at(1000);
  consume_at(2000);
  running(500, kPid);
  consume_at(3000);
  EXPECT_EQ(sink_.lost(LossKind::out_of_order), 1u);
  EXPECT_EQ(recording().counts().lost, 0u) << "it is not lost";
  finish();
  EXPECT_EQ(sink_.samples.size(), 1u);
}

TEST_F(RecordingTest, ThreadsWithoutARecordSleptOrRanByWhatTheKernelCounted) {
  recording().add_existing_threads();
  // The worker has run for more than half of the window since, the main thread not at all.
  tree_.write(fmt::format("{}/task/{}/schedstat", kPid, kWorker), "900001000 200 3\n");
  finish();
  EXPECT_TRUE(waits_of(worker_).empty());
  auto slept = waits_of(main_);
  ASSERT_EQ(slept.size(), 1u);
  EXPECT_EQ(slept[0].start, kBegin);
  EXPECT_EQ(slept[0].duration_ns, kEnd - kBegin);
  EXPECT_TRUE(slept[0].has(WaitFlag::open_start));
  EXPECT_TRUE(slept[0].has(WaitFlag::open_end));
}

TEST_F(RecordingTest, ABlockedThreadsFirstStackComesFromASnapshot) {
  recording().add_existing_threads();
  tree_.write(
      fmt::format("{}/task/{}/syscall", kPid, kPid),
      fmt::format("{} 0x7f40 0x80 0x0 0x0 0x0 0x0 0x7000 {:#x}\n", SYS_futex, kCode + 0x10));
  tree_.write(fmt::format("{}/task/{}/syscall", kPid, kWorker), "running\n");
  recording().take_first_snapshots(kNsPerSecond);
  finish();
  auto slept = waits_of(main_);
  ASSERT_EQ(slept.size(), 1u);
  EXPECT_TRUE(slept[0].has(WaitFlag::stack_snapshot));
  EXPECT_EQ(slept[0].syscall, SYS_futex);
  EXPECT_THAT(sink_.addresses(slept[0].stack), ElementsAre(0x1010));
  EXPECT_EQ(unwinder_.last_registers.ip(), kCode + 0x10);
  EXPECT_FALSE(waits_of(worker_).at(0).has(WaitFlag::stack_snapshot));
}

TEST_F(RecordingTest, AWaitWithoutItsStackSaysWhetherItWasLostOrNeverTaken) {
  events_.off_cpu_stacks = false;
  feed(100, fake::switch_record(head(100, kPid), true));
  finish();
  EXPECT_THAT(sink_.addresses(waits_of(main_).at(0).stack),
              ElementsAre(static_cast<uint64_t>(model::StackEnd::not_sampled)));
}

TEST_F(RecordingTest, OpenWaitsAreThoseOfTheMoment) {
  running(50, kPid);
  switch_to(100'000, kPid, kStranger);
  batch_.drained_at = kBegin + 500'000;
  recording().consume(std::exchange(batch_, {}));
  batch_.drained_at = kBegin + 600'000;
  recording().consume(std::exchange(batch_, {}));
  EXPECT_EQ(recording().complete_until(), kBegin + 500'000);
  auto open = recording().open_waits();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].thread, main_);
  EXPECT_EQ(open[0].duration_ns, 400'000);
  EXPECT_TRUE(sink_.waits.empty()) << "it is not over";
}

}  // namespace
}  // namespace assay::evidence
