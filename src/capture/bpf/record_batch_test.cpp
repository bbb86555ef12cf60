#include "capture/bpf/record_batch.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "capture/bpf/shared.h"

namespace assay::capture {
namespace {

std::vector<std::byte> record(uint32_t type, uint64_t time, size_t bytes = sizeof(bpf::head)) {
  bpf::head head{type, 0, static_cast<uint16_t>(bytes), time};
  std::vector<std::byte> out(bytes);
  std::memcpy(out.data(), &head, sizeof head);
  return out;
}

TEST(RecordBatch, RecordsLieAlignedAndKnowTheirTime) {
  Batch batch;
  take_record(record(bpf::kRecordWait, 70, 21), Pressure::none, batch);
  take_record(record(bpf::kRecordSample, 71), Pressure::none, batch);
  ASSERT_EQ(batch.entries.size(), 2u);
  EXPECT_EQ(batch.entries[0].time, 70);
  EXPECT_EQ(batch.entries[0].size, 21u);
  EXPECT_EQ(batch.entries[1].offset, 24u) << "the next multiple of eight";
  bpf::head second;
  std::memcpy(&second, batch.bytes.data() + batch.entries[1].offset, sizeof second);
  EXPECT_EQ(second.type, bpf::kRecordSample);
  EXPECT_EQ(second.time, 71u);
}

TEST(RecordBatch, UnderPressureRawStacksGoFirstAndWaitsStay) {
  auto kept = [](Pressure pressure) {
    Batch batch;
    for (uint32_t type : {bpf::kRecordRaw, bpf::kRecordSample, bpf::kRecordWait, bpf::kRecordStack})
      take_record(record(type, 1), pressure, batch);
    EXPECT_EQ(batch.entries.size() + batch.cut_stacks + batch.dropped_samples, 4u)
        << "what is dropped is counted";
    EXPECT_EQ(batch.malformed, 0u);
    return batch.entries.size();
  };
  EXPECT_EQ(kept(Pressure::none), 4u);
  EXPECT_EQ(kept(Pressure::cut_stacks), 3u);
  EXPECT_EQ(kept(Pressure::drop_samples), 2u);
}

TEST(RecordBatch, ARecordWithoutAHeadIsMalformed) {
  Batch batch;
  std::vector<std::byte> whole = record(bpf::kRecordWait, 1);
  for (size_t size = 0; size < whole.size(); ++size)
    take_record(std::span(whole).first(size), Pressure::none, batch);
  EXPECT_EQ(batch.malformed, whole.size());
  EXPECT_TRUE(batch.entries.empty());
}

TEST(RingBytes, AreAPowerOfTwoWithinTheirLimits) {
  constexpr size_t kMiB = 1 << 20;
  EXPECT_EQ(ring_bytes_of(32 * kMiB, 8), 4 * kMiB);
  EXPECT_EQ(ring_bytes_of(32 * kMiB, 6), 4 * kMiB) << "5.3 MiB are not a power of two";
  EXPECT_EQ(ring_bytes_of(32 * kMiB, 1), 8 * kMiB) << "no more than this";
  EXPECT_EQ(ring_bytes_of(32 * kMiB, 1024), kMiB / 4) << "no less";
  EXPECT_EQ(ring_bytes_of(32 * kMiB, 0), 8 * kMiB);
}

}  // namespace
}  // namespace assay::capture
