// The block codec: rows of samples, waits or heap events to compressed columns and back.
//
// Written by hand because no available library stores sorted, correlated rows at 5–8 bytes each for
// ~100 ns of encoding: rows sorted by thread become delta-varint columns and small dictionaries
// (docs/run-format.md has every byte), and zstd with its content checksum does the rest. In: rows
// sorted by thread, then time. Out: the blob and its totals; decoding gives the same rows in the
// same order. Threads: one BlockEncoder or BlockDecoder belongs to one thread at a time. Failures:
// decoding checks everything: any byte sequence gives consistent rows or an Error.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/heap/heap.h"
#include "model/sample.h"
#include "run/blocks/byte_stream.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace assay::run {

inline constexpr size_t kMaxBlockRows = size_t{1} << 17;
inline constexpr size_t kMaxRawBlockBytes = size_t{16} << 20;

// The totals beside a blob in its table row; recomputed and compared when the blob is decoded.
struct SampleTotals {
  TimeNs begin_ns = 0;  // first sample's time
  TimeNs end_ns = 0;    // last sample's time
  int64_t count = 0;
  int64_t weight_ns = 0;
  bool operator==(const SampleTotals&) const = default;
};
struct WaitTotals {
  TimeNs begin_ns = 0;  // earliest start
  TimeNs end_ns = 0;    // latest end
  int64_t count = 0;
  int64_t blocked_ns = 0;  // durations without their run-queue parts
  int64_t runqueue_ns = 0;
  bool operator==(const WaitTotals&) const = default;
};
struct HeapAllocTotals {
  TimeNs begin_ns = 0;  // first and last time, as for samples
  TimeNs end_ns = 0;
  int64_t count = 0;
  int64_t bytes = 0;  // of the sampled allocations themselves, not what they stand for
  bool operator==(const HeapAllocTotals&) const = default;
};
struct HeapFreeTotals {
  TimeNs begin_ns = 0;
  TimeNs end_ns = 0;
  int64_t count = 0;
  bool operator==(const HeapFreeTotals&) const = default;
};
SampleTotals totals_of(std::span<const model::Sample> rows);
WaitTotals totals_of(std::span<const model::Wait> rows);
HeapAllocTotals totals_of(std::span<const model::HeapAlloc> rows);
HeapFreeTotals totals_of(std::span<const model::HeapFree> rows);

// Whether a wait can be stored: its parts are not negative and no longer than it, and its end is a
// time.
bool is_storable(const model::Wait& wait);

class BlockEncoder {
 public:
  BlockEncoder();
  ~BlockEncoder();
  BlockEncoder(const BlockEncoder&) = delete;
  BlockEncoder& operator=(const BlockEncoder&) = delete;

  // At most kMaxBlockRows rows; waits must be storable. The result is valid until the next call.
  Result<std::span<const uint8_t>> encode(std::span<const model::Sample> rows);
  Result<std::span<const uint8_t>> encode(std::span<const model::Wait> rows);
  Result<std::span<const uint8_t>> encode(std::span<const model::HeapAlloc> rows);
  Result<std::span<const uint8_t>> encode(std::span<const model::HeapFree> rows);

 private:
  template <class Key>
  class Dictionary;
  struct Object;

  void begin_columns();
  Result<std::span<const uint8_t>> seal(uint8_t kind, size_t rows, TimeNs base, size_t columns,
                                        uint32_t per_row_columns);
  Result<std::span<const uint8_t>> compress();

  std::unique_ptr<ZSTD_CCtx_s, size_t (*)(ZSTD_CCtx_s*)> zstd_;
  std::array<ByteWriter, 13> columns_;
  std::unique_ptr<Dictionary<uint64_t>> shapes_;
  std::unique_ptr<Dictionary<Object>> objects_;
  std::unique_ptr<Dictionary<uint64_t>> waker_stacks_;
  ByteWriter raw_;
  std::vector<size_t> cuts_;  // where columns and planes end in raw_
  std::vector<uint8_t> compressed_;
};

class BlockDecoder {
 public:
  BlockDecoder();
  ~BlockDecoder();
  BlockDecoder(const BlockDecoder&) = delete;
  BlockDecoder& operator=(const BlockDecoder&) = delete;

  // Replaces `rows`. An Error says what is inconsistent, without naming the file.
  Result<void> decode(std::span<const uint8_t> blob, std::vector<model::Sample>& rows);
  Result<void> decode(std::span<const uint8_t> blob, std::vector<model::Wait>& rows);
  Result<void> decode(std::span<const uint8_t> blob, std::vector<model::HeapAlloc>& rows);
  Result<void> decode(std::span<const uint8_t> blob, std::vector<model::HeapFree>& rows);

  // The two halves, apart so that a fuzzer can reach the second without a valid zstd frame.
  Result<std::span<const uint8_t>> decompress(std::span<const uint8_t> blob);
  static Result<void> decode_raw(std::span<const uint8_t> raw, std::vector<model::Sample>& rows);
  static Result<void> decode_raw(std::span<const uint8_t> raw, std::vector<model::Wait>& rows);
  static Result<void> decode_raw(std::span<const uint8_t> raw, std::vector<model::HeapAlloc>& rows);
  static Result<void> decode_raw(std::span<const uint8_t> raw, std::vector<model::HeapFree>& rows);

 private:
  std::unique_ptr<ZSTD_DCtx_s, size_t (*)(ZSTD_DCtx_s*)> zstd_;
  std::vector<uint8_t> raw_;
};

}  // namespace assay::run
