// The consumer's thread between a reader's and its owner's, with records that a test makes.
#include "session/record/consumer.h"

#include <thread>

#include <gtest/gtest.h>

#include "capture/perf/event_set_fixture.h"
#include "capture/perf/fake_perf_records.h"
#include "evidence/testing/evidence_fixture.h"

namespace assay::session {
namespace {

namespace perf = capture::fake;
using capture::EventKind;

// Writes what a test put into it, one record in every round.
class RecordSource final : public capture::BatchSource {
 public:
  void put(const perf::Bytes& record, TimeNs time) {
    std::lock_guard lock(mutex_);
    records_.emplace_back(time, record);
  }
  void drain(capture::Pressure, capture::Batch& batch) override {
    std::lock_guard lock(mutex_);
    if (records_.empty()) return;
    auto [time, record] = std::move(records_.front());
    records_.pop_front();
    batch.entries.push_back(
        {time, static_cast<uint32_t>(batch.bytes.size()), static_cast<uint32_t>(record.size())});
    batch.bytes.insert(batch.bytes.end(), record.begin(), record.end());
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<TimeNs, perf::Bytes>> records_;
};

class FixedSwitchStacks final : public evidence::SwitchStacks {
 public:
  uint32_t copy_bytes() const override { return 4096; }
  bool user_chain() const override { return false; }
  void set(uint32_t, bool) override {}
  bool can_be_bare() const override { return false; }
  void record_kernel_part(bool) override {}
};

class OpenedEvents : public capture::EventSetTest {
 public:
  void TestBody() override {}
  using capture::EventSetTest::open;
};

class ConsumerTest : public evidence::testing::EvidenceTest {
 protected:
  ConsumerTest() {
    thread_ = tasks_.add(kPid, kPid);
    walk_finds({kCode + 0x10});
    reader_.start();
    consumer_.start();
  }
  ~ConsumerTest() override { stop(); }
  void stop() {
    consumer_.close_events(monotonic_ns());
    reader_.stop();
    consumer_.join();
  }
  void sample() {
    TimeNs now = monotonic_ns();
    perf::StackSample sample{.id = evidence::testing::FakeEvents::id_of(EventKind::on_cpu),
                             .head = {now, kPid, kPid, 0}};
    source_.put(perf::stack_sample(sample), now);
  }
  static void wait_for(const std::function<bool()>& seen) {
    while (!seen()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  OpenedEvents opened_;
  std::unique_ptr<capture::EventSet> events_ = opened_.open();
  evidence::testing::FakeEvents recorded_;
  FixedSwitchStacks switch_stacks_;
  evidence::StackPolicy policy_{switch_stacks_};
  evidence::HotSource hot_;
  evidence::FrameNamer namer_{symbolizer_, sink_};
  evidence::DataNames data_names_{spaces_, tasks_, namer_};
  evidence::WaitSites sites_{proc_, symbolizer_, spaces_.kernel(), [](pid_t, uint64_t) {}};
  TimeNs begin_ = monotonic_ns();
  evidence::Recording recording_{{proc_, recorded_, spaces_, unwinder_, stacks_, sites_, tasks_,
                                  sink_, hot_, data_names_, nullptr, &symbolizer_},
                                 begin_};
  RecordSource source_;
  capture::RingReader reader_{{}, {.interval_ms = 1}, {&source_}};
  Consumer consumer_{
      {reader_, *events_, nullptr, recording_, tasks_, policy_, stacks_, unwinder_, sink_, nullptr,
       os::CpuWatch::open()},
      begin_};
  model::ThreadId thread_;
};

TEST_F(ConsumerTest, WhatTheReaderReadsIsRecordedWhileOthersLookOn) {
  constexpr uint64_t kSamples = 20;
  for (uint64_t i = 0; i < kSamples; ++i) sample();
  wait_for([&] { return recording_.counts().samples == kSamples; });
  wait_for([&] { return consumer_.complete_until() > begin_; });
  EXPECT_FALSE(consumer_.target_gone());
  stop();
  EXPECT_EQ(sink_.samples.size(), kSamples);
  EXPECT_EQ(sink_.samples[0].thread, thread_);
}

TEST_F(ConsumerTest, WhoLivesIsPublishedAndTheLastOnesEndIsTheTargets) {
  wait_for([&] { return consumer_.live_tasks().threads.size() == 1; });
  EXPECT_EQ(consumer_.live_tasks().processes.size(), 1u);
  EXPECT_EQ(consumer_.live_tasks().threads[0].tid, kPid);
  TimeNs now = monotonic_ns();
  source_.put(perf::exit_record({now, kPid, kPid, 0}, {kPid, 1, kPid, 1}), now);
  wait_for([&] { return consumer_.target_gone(); });
  EXPECT_TRUE(consumer_.live_tasks().threads.empty());
}

TEST_F(ConsumerTest, AfterALossTheTasksAreLookedForAgainTwice) {
  // A record that cannot be read is a loss like any other.
  perf::Bytes broken = perf::usual_sample(evidence::testing::FakeEvents::id_of(EventKind::on_cpu),
                                          {monotonic_ns(), kPid, kPid, 0}, 64, 64);
  broken.resize(32);
  source_.put(broken, monotonic_ns());
  wait_for([&] { return recording_.counts().lost == 1; });
  for (int round = 0; round < 3; ++round) sample();
  wait_for([&] { return recording_.counts().samples == 3; });
  stop();
  EXPECT_GE(tasks_.resyncs, 1);
  EXPECT_LE(tasks_.resyncs, 2);
}

TEST_F(ConsumerTest, WaitsThatAreNotOverAreToldMeanwhile) {
  sample();  // it runs
  TimeNs now = monotonic_ns();
  source_.put(perf::switch_record({now, kPid, kPid, 0}, true), now);
  wait_for([&] { return consumer_.complete_until() > now + 300 * kNsPerMs; });
  stop();
  ASSERT_EQ(sink_.open_waits.size(), 1u);
  EXPECT_EQ(sink_.open_waits[0].thread, thread_);
  EXPECT_GE(sink_.open_waits[0].start, begin_);
  EXPECT_TRUE(sink_.open_waits[0].has(model::WaitFlag::open_end));
}

}  // namespace
}  // namespace assay::session
