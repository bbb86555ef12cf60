#include "capture/perf/ring.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/perf/fake_perf_kernel.h"
#include "capture/perf/fake_perf_records.h"

namespace assay::capture {
namespace {

using fake::Bytes;
using fake::FakeRing;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kCapacity = 4096;

// A record of `size` bytes (a multiple of 8) whose content depends on `seed`.
Bytes record_of(size_t size, uint8_t seed) {
  Bytes record = fake::begin(PERF_RECORD_SAMPLE, 0);
  while (record.size() < size) record.push_back(static_cast<std::byte>(seed + record.size()));
  fake::set_size(record, size);
  return record;
}

class RingTest : public testing::Test {
 protected:
  RingTest()
      : memory_(std::make_shared<FakeRing>(kCapacity)),
        ring_(std::make_unique<fake::FakeRingMemory>(memory_)) {}

  std::vector<Bytes> drain(bool expect_sane = true) {
    std::vector<Bytes> records;
    bool sane = ring_.drain([&](std::span<const std::byte> record) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(record.data()) % 8, 0u)
          << "records are parsed in place";
      records.emplace_back(record.begin(), record.end());
    });
    EXPECT_EQ(sane, expect_sane);
    EXPECT_EQ(memory_->tail(), memory_->head()) << "all space is given back";
    return records;
  }

  // The first word of the ring at `position` says it is a record of `size` bytes.
  void write_header(uint64_t position, uint16_t size) {
    perf_event_header header{PERF_RECORD_SAMPLE, 0, size};
    std::memcpy(memory_->data().data() + position % kCapacity, &header, sizeof header);
  }

  std::shared_ptr<FakeRing> memory_;
  Ring ring_;
};

TEST_F(RingTest, AnEmptyRingHasNothing) {
  EXPECT_THAT(drain(), IsEmpty());
  EXPECT_EQ(ring_.fill(), 0);
  EXPECT_EQ(ring_.capacity(), kCapacity);
}

TEST_F(RingTest, RecordsComeOutWholeAndInOrder) {
  Bytes a = record_of(16, 1), b = record_of(8, 2), c = record_of(400, 3);
  for (const Bytes& record : {a, b, c}) ASSERT_TRUE(memory_->write(record));
  EXPECT_EQ(ring_.pending_bytes(), 424u);
  EXPECT_THAT(drain(), ElementsAre(a, b, c));
  EXPECT_DOUBLE_EQ(ring_.fill(), 424.0 / kCapacity);
  EXPECT_THAT(drain(), IsEmpty());
}

TEST_F(RingTest, ARecordAcrossTheEndIsPutTogether) {
  // Every way an 8-byte aligned record of 64 bytes can lie across the end.
  for (size_t before_end = 0; before_end <= 64; before_end += 8) {
    memory_->start_at(5 * kCapacity - before_end);
    Bytes a = record_of(64, static_cast<uint8_t>(before_end)), b = record_of(24, 9);
    ASSERT_TRUE(memory_->write(a));
    ASSERT_TRUE(memory_->write(b));
    EXPECT_THAT(drain(), ElementsAre(a, b)) << before_end;
  }
}

TEST_F(RingTest, AnExactlyFullRingIsReadAndThenTakesRecordsAgain) {
  memory_->start_at(1000);
  std::vector<Bytes> written;
  for (uint8_t i = 0; i < 8; ++i) {
    written.push_back(record_of(kCapacity / 8, i));
    ASSERT_TRUE(memory_->write(written.back()));
  }
  EXPECT_FALSE(memory_->write(record_of(8, 0))) << "the test's ring is full";
  EXPECT_EQ(drain(), written);
  EXPECT_DOUBLE_EQ(ring_.fill(), 1.0);
  EXPECT_TRUE(memory_->write(record_of(8, 0)));
  EXPECT_EQ(drain().size(), 1u);
}

TEST_F(RingTest, OneRecordMayFillTheRing) {
  memory_->start_at(kCapacity - 8);
  Bytes record = record_of(kCapacity, 4);
  ASSERT_TRUE(memory_->write(record));
  EXPECT_THAT(drain(), ElementsAre(record));
}

TEST_F(RingTest, HeaderSizesThatCannotBeRightEmptyTheRing) {
  // 0 and 4: shorter than a header; 12: not whole words; 24 and 65528: more than was written.
  for (uint16_t size : {0, 4, 12, 24, 65528}) {
    memory_->start_at(2 * kCapacity - 32);
    Bytes good = record_of(24, 7);
    ASSERT_TRUE(memory_->write(good));
    ASSERT_TRUE(memory_->write(record_of(16, 8)));
    write_header(memory_->head() - 16, size);
    EXPECT_THAT(drain(false), ElementsAre(good)) << "size " << size;
    ASSERT_TRUE(memory_->write(good));
    EXPECT_THAT(drain(), ElementsAre(good)) << "the ring goes on after damage";
  }
}

TEST_F(RingTest, AHeadThatEndsWithinAHeaderIsDamage) {
  memory_->start_at(kCapacity - 8);
  write_header(kCapacity - 8, 8);
  memory_->publish_head(kCapacity + 4);
  EXPECT_EQ(drain(false).size(), 1u);
}

TEST_F(RingTest, AHeadBeyondTheCapacityEmptiesTheRing) {
  for (uint64_t beyond : {uint64_t{8}, uint64_t{kCapacity}, uint64_t{1} << 40}) {
    memory_->start_at(64);
    write_header(64, 8);
    memory_->publish_head(64 + kCapacity + beyond);
    EXPECT_EQ(ring_.pending_bytes(), kCapacity) << "no more than there can be";
    EXPECT_THAT(drain(false), IsEmpty());
  }
}

TEST_F(RingTest, AHeadBehindTheTailEmptiesTheRing) {
  memory_->start_at(4096);
  memory_->publish_head(4088);
  EXPECT_THAT(drain(false), IsEmpty());
}

TEST_F(RingTest, LongStreamsPassUnchanged) {
  std::mt19937 random(7);
  std::vector<Bytes> written, read;
  for (int i = 0; i < 5000; ++i) {
    Bytes record = record_of((random() % 120 + 1) * 8, static_cast<uint8_t>(i));
    if (!memory_->write(record)) {
      auto some = drain();
      read.insert(read.end(), some.begin(), some.end());
      ASSERT_TRUE(memory_->write(record));
    }
    written.push_back(std::move(record));
  }
  auto rest = drain();
  read.insert(read.end(), rest.begin(), rest.end());
  EXPECT_TRUE(read == written);
}

}  // namespace
}  // namespace assay::capture
