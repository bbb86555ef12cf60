#include "capture/perf/ring_reader.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "capture/perf/fake_perf_kernel.h"
#include "capture/perf/fake_perf_records.h"

namespace assay::capture {
namespace {

using fake::Bytes;
using fake::FakeRing;
using testing::ElementsAreArray;
using testing::IsEmpty;

constexpr uint64_t kOnCpuId = 1, kWakingId = 2;

class TwoEvents final : public EventIds {
 public:
  EventKind kind_of(uint64_t id) const override {
    return id == kWakingId ? EventKind::waking : EventKind::on_cpu;
  }
};
const TwoEvents kIds;

RecordHead at(TimeNs time) {
  return {.time = time, .pid = 50, .tid = 51, .cpu = 0};
}

std::vector<Bytes> one_of_each_side_band(TimeNs time) {
  ForkRecord task{.pid = 50, .parent_pid = 50, .tid = 52, .parent_tid = 51};
  return {fake::switch_record(at(time), true),
          fake::cpu_wide_switch_record(at(time), false, 7),
          fake::mmap2_record(at(time), {0x1000, 0x1000, 0, 5, {}, "/bin/" + std::string(300, 'x')}),
          fake::comm_record(at(time), 50, 51, "name", false),
          fake::fork_record(at(time), task),
          fake::exit_record(at(time), task)};
}

class RingReaderTest : public testing::Test {
 protected:
  FakeRing& add_ring(int cpu, size_t bytes = 1u << 18, int poll_fd = -1) {
    auto memory = std::make_shared<FakeRing>(bytes);
    rings_.push_back(std::make_unique<Ring>(std::make_unique<fake::FakeRingMemory>(memory)));
    sources_.push_back({cpu, poll_fd, rings_.back().get()});
    memories_.push_back(memory);
    return *memory;
  }
  std::unique_ptr<RingReader> reader(RingReader::Limits limits = {}) {
    return std::make_unique<RingReader>(sources_, limits);
  }
  static SampleRecord sample_in(const Batch& batch, size_t entry) {
    auto record = parse_record(batch.record(batch.entries.at(entry)), kIds);
    if (!record || !std::holds_alternative<SampleRecord>(record->body)) {
      ADD_FAILURE() << "entry " << entry << " is no sample";
      return {};
    }
    return std::get<SampleRecord>(record->body);
  }
  static bool is_sample(const Batch& batch, const Batch::Entry& entry) {
    perf_event_header header;
    std::memcpy(&header, batch.record(entry).data(), sizeof header);
    return header.type == PERF_RECORD_SAMPLE;
  }
  // Until the reader's thread has taken all that was written; a broken reader fails the test here.
  static void wait_until_read(FakeRing& ring) {
    for (int tries = 0; ring.tail() != ring.head(); ++tries) {
      ASSERT_LT(tries, 20'000) << "the reader does not read";
      usleep(1000);
    }
  }

  std::vector<std::shared_ptr<FakeRing>> memories_;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::vector<RingSource> sources_;
};

TEST_F(RingReaderTest, ARoundBringsTheRecordsOfAllRings) {
  FakeRing& side = add_ring(0);
  FakeRing& samples = add_ring(0);
  auto side_band = one_of_each_side_band(10);
  for (const Bytes& record : side_band) ASSERT_TRUE(side.write(record));
  Bytes waking = fake::waking_sample(kWakingId, at(20), fake::stack_pattern(36));
  ASSERT_TRUE(samples.write(waking));
  TimeNs before = monotonic_ns();
  Batch batch = reader()->read_round(Pressure::none);
  EXPECT_GE(batch.drained_at, before);
  EXPECT_LE(batch.drained_at, monotonic_ns());
  ASSERT_EQ(batch.entries.size(), side_band.size() + 1);
  for (size_t i = 0; i < side_band.size(); ++i) {
    EXPECT_EQ(batch.entries[i].time, 10);
    EXPECT_THAT(batch.record(batch.entries[i]), ElementsAreArray(side_band[i])) << i;
  }
  EXPECT_THAT(batch.record(batch.entries.back()), ElementsAreArray(waking));
  EXPECT_EQ(batch.malformed + batch.cut_stacks + batch.dropped_samples + batch.throttled, 0u);
}

TEST_F(RingReaderTest, OnlyTheValidPartOfAStackCopyIsKept) {
  FakeRing& ring = add_ring(0);
  Bytes whole = fake::usual_sample(kOnCpuId, at(30), 8192, 1504);
  ASSERT_TRUE(ring.write(whole));
  ASSERT_TRUE(ring.write(fake::switch_record(at(31), true)));
  Batch batch = reader()->read_round(Pressure::none);
  ASSERT_EQ(batch.entries.size(), 2u);
  EXPECT_EQ(batch.entries[0].size, whole.size() - (8192 - 1504));
  EXPECT_EQ(batch.cut_stacks, 0u) << "nothing of worth was cut";
  auto before = std::get<SampleRecord>(parse_record(whole, kIds)->body);
  auto after = sample_in(batch, 0);
  EXPECT_THAT(after.stack, ElementsAreArray(before.stack));
  EXPECT_EQ(after.registers.value, before.registers.value);
  EXPECT_THAT(after.kernel_chain, ElementsAreArray(before.kernel_chain));
  EXPECT_THAT(after.user_chain, ElementsAreArray(before.user_chain));
  EXPECT_EQ(after.period, before.period);
}

TEST_F(RingReaderTest, UnderPressureStacksAreCutButChainsStay) {
  FakeRing& ring = add_ring(0);
  ASSERT_TRUE(ring.write(fake::usual_sample(kOnCpuId, at(30), 1024, 1024)));
  ASSERT_TRUE(ring.write(fake::usual_sample(kOnCpuId, at(31), 0, 0)));
  Bytes waking = fake::waking_sample(kWakingId, at(32), fake::stack_pattern(36));
  ASSERT_TRUE(ring.write(waking));
  Batch batch = reader()->read_round(Pressure::cut_stacks);
  ASSERT_EQ(batch.entries.size(), 3u);
  EXPECT_EQ(batch.cut_stacks, 1u) << "a sample without a copy loses nothing";
  auto sample = sample_in(batch, 0);
  EXPECT_THAT(sample.stack, IsEmpty());
  EXPECT_EQ(sample.user_chain.size(), 2u);
  EXPECT_EQ(sample.kernel_chain.size(), 1u);
  EXPECT_TRUE(sample.registers.has(model::kRegRip));
  EXPECT_THAT(batch.record(batch.entries[2]), ElementsAreArray(waking));
  EXPECT_EQ(batch.dropped_samples, 0u);
}

TEST_F(RingReaderTest, AtTheLimitSamplesAreDroppedButSideBandStays) {
  FakeRing& ring = add_ring(0);
  auto side_band = one_of_each_side_band(10);
  for (const Bytes& record : side_band) {
    ASSERT_TRUE(ring.write(fake::usual_sample(kOnCpuId, at(9), 512, 512)));
    ASSERT_TRUE(ring.write(record));
  }
  ASSERT_TRUE(ring.write(fake::lost_record(at(11), 4)));
  Batch batch = reader()->read_round(Pressure::drop_samples);
  EXPECT_EQ(batch.dropped_samples, side_band.size());
  ASSERT_EQ(batch.entries.size(), side_band.size());
  for (size_t i = 0; i < side_band.size(); ++i) {
    EXPECT_THAT(batch.record(batch.entries[i]), ElementsAreArray(side_band[i])) << i;
  }
  EXPECT_EQ(batch.ring_losses.size(), 1u);
}

TEST_F(RingReaderTest, LossIsCountedPerRing) {
  FakeRing& first = add_ring(0);
  FakeRing& second = add_ring(5);
  ASSERT_TRUE(first.write(fake::lost_record(at(1), 10)));
  ASSERT_TRUE(second.write(fake::lost_record(at(2), 200)));
  ASSERT_TRUE(second.write(fake::lost_samples_record(at(3), 3000)));
  ASSERT_TRUE(second.write(fake::throttle_record(at(4), true)));
  ASSERT_TRUE(second.write(fake::throttle_record(at(5), false)));
  Batch batch = reader()->read_round(Pressure::none);
  std::map<int, uint64_t> by_cpu;
  for (const auto& loss : batch.ring_losses) by_cpu[loss.cpu] += loss.records;
  EXPECT_EQ(by_cpu, (std::map<int, uint64_t>{{0, 10}, {5, 3200}}));
  EXPECT_EQ(batch.throttled, 1u);
  EXPECT_THAT(batch.entries, IsEmpty()) << "these are counts, not records to order";
}

TEST_F(RingReaderTest, DamageIsCountedAndTheOtherRingsAreRead) {
  FakeRing& damaged = add_ring(0);
  FakeRing& good = add_ring(1);
  Bytes short_sample = fake::finish(fake::begin(PERF_RECORD_SAMPLE, 0));
  ASSERT_TRUE(damaged.write(short_sample));
  Bytes short_lost = fake::finish(fake::begin(PERF_RECORD_LOST, 0));
  ASSERT_TRUE(damaged.write(short_lost));
  ASSERT_TRUE(damaged.write(fake::switch_record(at(1), true)));
  Bytes no_size = fake::switch_record(at(2), true);
  fake::set_size(no_size, 0);
  ASSERT_TRUE(damaged.write(no_size));
  ASSERT_TRUE(good.write(fake::switch_record(at(3), true)));
  Batch batch = reader()->read_round(Pressure::none);
  EXPECT_EQ(batch.malformed, 2u) << "a sample without fields, and a ring that lost its boundaries";
  ASSERT_EQ(batch.entries.size(), 2u);
  EXPECT_EQ(batch.entries[0].time, 1);
  EXPECT_EQ(batch.entries[1].time, 3);
}

// Without a consumer the queue only grows, so the steps of saving memory follow once and in order.
TEST_F(RingReaderTest, TheLadderIsClimbedAsTheQueueFills) {
  FakeRing& side = add_ring(0);
  FakeRing& ring = add_ring(0);
  const RingReader::Limits limits{.queue_bytes = 64 * 1024, .interval_ms = 3};
  auto reading = reader(limits);
  reading->start();
  uint64_t written_samples = 0, written_switches = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 8; ++i) {
      ASSERT_TRUE(ring.write(fake::usual_sample(kOnCpuId, at(round), 1024, 1024)));
      ASSERT_TRUE(side.write(fake::switch_record(at(round), true)));
      ++written_samples;
      ++written_switches;
    }
    wait_until_read(ring);
    wait_until_read(side);
  }
  reading->stop();
  size_t queued = 0;
  uint64_t whole = 0, cut = 0, dropped = 0, switches = 0;
  while (auto batch = reading->next()) {
    uint64_t samples = 0;
    for (const auto& entry : batch->entries) (is_sample(*batch, entry) ? samples : switches) += 1;
    if (queued > limits.queue_bytes) {
      EXPECT_EQ(samples, 0u);
    } else if (queued > limits.queue_bytes / 2) {
      EXPECT_EQ(batch->cut_stacks, samples);
      EXPECT_EQ(batch->dropped_samples, 0u);
    } else {
      EXPECT_EQ(batch->cut_stacks + batch->dropped_samples, 0u);
    }
    cut += batch->cut_stacks;
    whole += samples - batch->cut_stacks;
    dropped += batch->dropped_samples;
    queued += batch->bytes.size() + batch->entries.size() * sizeof(Batch::Entry);
  }
  EXPECT_GT(whole, 0u);
  EXPECT_GT(cut, 0u);
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(whole + cut + dropped, written_samples);
  EXPECT_EQ(switches, written_switches);
}

// Side-band records are never dropped by the reader, so a queue with nothing else shows the last
// step: they stay in the ring, and the kernel counts what does not fit.
TEST_F(RingReaderTest, AQueueThatNobodyTakesFromEndsTheReadingNotTheMemory) {
  FakeRing& side = add_ring(0);
  const RingReader::Limits limits{.queue_bytes = 4 * 1024, .interval_ms = 3};
  auto reading = reader(limits);
  reading->start();
  uint64_t written = 0;
  bool ring_is_full = false;
  for (int i = 0; i < 1'000'000 && !ring_is_full; ++i) {
    ring_is_full = !side.write(fake::switch_record(at(i), true));
    written += ring_is_full ? 0 : 1;
    if (ring_is_full && reading->queued_bytes() <= 2 * limits.queue_bytes) {
      wait_until_read(side);  // only a burst: the reader goes on
      ring_is_full = false;
    }
  }
  ASSERT_TRUE(ring_is_full);
  EXPECT_LE(reading->queued_bytes(), 2 * limits.queue_bytes + 2 * side.data().size())
      << "one round may go beyond, and holds a ring at most, with its index";
  uint64_t read = 0;
  reading->stop();
  while (auto batch = reading->next()) read += batch->entries.size();
  EXPECT_EQ(read, written) << "what was in the ring at the end is delivered";
}

TEST_F(RingReaderTest, AConsumerThatCatchesUpEndsThePressure) {
  FakeRing& ring = add_ring(0);
  auto reading = reader({.queue_bytes = 8 * 1024, .interval_ms = 3});
  reading->start();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(ring.write(fake::usual_sample(kOnCpuId, at(1), 1024, 1024)));
    wait_until_read(ring);
  }
  for (bool found = false; !found;) {  // until the first batch of the time under pressure
    auto batch = reading->next();
    ASSERT_TRUE(batch);
    found = batch->cut_stacks + batch->dropped_samples > 0;
  }
  // Each whole sample that arrives now proves that the queue is taken as emptied; the first ones
  // may have been read before it was.
  uint64_t whole = 0;
  for (int i = 0; i < 10'000 && whole == 0; ++i) {
    ring.write(fake::usual_sample(kOnCpuId, at(2), 1024, 1024));
    auto batch = reading->next();
    ASSERT_TRUE(batch);
    for (const auto& entry : batch->entries) whole += entry.time == 2 && entry.size > 1024;
  }
  EXPECT_GT(whole, 0u);
  reading->stop();
}

TEST_F(RingReaderTest, StopDeliversWhatIsLeft) {
  FakeRing& ring = add_ring(0);
  auto reading = reader();
  reading->start();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(ring.write(fake::switch_record(at(i), true)));
  reading->stop();
  size_t records = 0;
  while (auto batch = reading->next()) records += batch->entries.size();
  EXPECT_EQ(records, 100u);
  EXPECT_FALSE(reading->next()) << "the end stays the end";
  reading->stop();
}

TEST_F(RingReaderTest, AReaderThatNeverStartedEndsToo) {
  add_ring(0);
  auto reading = reader();
  reading->stop();
  EXPECT_FALSE(reading->next());
}

TEST_F(RingReaderTest, AnIntervalBelowTheShortestRoundDoesNotBlock) {
  FakeRing& ring = add_ring(0);
  auto reading = reader({.queue_bytes = 1 << 20, .interval_ms = 1});
  reading->start();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(ring.write(fake::switch_record(at(i), true)));
    wait_until_read(ring);
  }
  reading->stop();
}

TEST_F(RingReaderTest, AReadableDescriptorEndsTheWait) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  UniqueFd event(ends[0]), kernel_side(ends[1]);
  FakeRing& ring = add_ring(0, 1 << 16, event.get());
  // So long an interval that only the descriptor can wake the reader before wait_until_read gives
  // up.
  auto reading = reader({.queue_bytes = 1 << 20, .interval_ms = 3'600'000});
  reading->start();
  ASSERT_TRUE(ring.write(fake::switch_record(at(1), true)));
  ASSERT_EQ(write(kernel_side.get(), "x", 1), 1);
  wait_until_read(ring);
  reading->stop();
}

TEST_F(RingReaderTest, ProducerReaderAndConsumerRunAtOnce) {
  constexpr int kRecords = 20'000;
  FakeRing& side = add_ring(0, 1 << 16);
  FakeRing& samples = add_ring(0, 1 << 16);
  auto reading = reader({.queue_bytes = 256 * 1024, .interval_ms = 3});
  reading->start();
  std::thread producer([&] {
    Bytes sample = fake::usual_sample(kOnCpuId, at(1), 1024, 512);
    for (int i = 0; i < kRecords; ++i) {
      while (!side.write(fake::switch_record(at(i), true))) usleep(100);
      while (!samples.write(sample)) usleep(100);
    }
  });
  std::thread ender([&] {
    producer.join();
    reading->stop();
  });
  uint64_t sample_records = 0, dropped = 0, malformed = 0;
  TimeNs next_switch = 0;
  while (auto batch = reading->next()) {
    dropped += batch->dropped_samples;
    malformed += batch->malformed;
    for (const auto& entry : batch->entries) {
      if (is_sample(*batch, entry)) {
        ++sample_records;
      } else {
        EXPECT_EQ(entry.time, next_switch++);
      }
    }
  }
  ender.join();
  EXPECT_EQ(next_switch, kRecords) << "every switch once and in order";
  EXPECT_EQ(sample_records + dropped, static_cast<uint64_t>(kRecords));
  EXPECT_EQ(malformed, 0u);
}

}  // namespace
}  // namespace assay::capture
