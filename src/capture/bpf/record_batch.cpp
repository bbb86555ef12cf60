#include "capture/bpf/record_batch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "capture/bpf/shared.h"

namespace assay::capture {
namespace {

constexpr size_t kSmallestRing = 256 * 1024;
constexpr size_t kLargestRing = 8u << 20;

}  // namespace

void take_record(std::span<const std::byte> record, Pressure pressure, Batch& batch) {
  bpf::head head;
  if (record.size() < sizeof head) {
    ++batch.malformed;
    return;
  }
  std::memcpy(&head, record.data(), sizeof head);
  bool is_raw = head.type == bpf::kRecordRaw;
  if ((pressure == Pressure::drop_samples && head.type == bpf::kRecordSample) ||
      (pressure != Pressure::none && is_raw)) {
    is_raw ? ++batch.cut_stacks : ++batch.dropped_samples;
    return;
  }
  auto offset = static_cast<uint32_t>(batch.bytes.size());
  batch.bytes.insert(batch.bytes.end(), record.begin(), record.end());
  batch.bytes.resize((batch.bytes.size() + 7) & ~size_t{7});
  batch.entries.push_back(
      {static_cast<TimeNs>(head.time), offset, static_cast<uint32_t>(record.size())});
}

size_t ring_bytes_of(size_t budget_bytes, size_t rings) {
  size_t share = budget_bytes / std::max<size_t>(1, rings);
  return std::bit_floor(std::clamp(share, kSmallestRing, kLargestRing));
}

}  // namespace assay::capture
