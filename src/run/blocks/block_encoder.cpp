#include <algorithm>

#include <zstd.h>

#include "run/blocks/block_codec.h"
#include "run/blocks/block_layout.h"

namespace assay::run {
namespace {

// Level 3 is slower and no smaller on these columns (bench/run_codec_bench.cpp).
constexpr int kZstdLevel = 1;
// A smaller part shares a zstd block with its neighbour; separate tables would cost more than they
// save.
constexpr size_t kMinZstdBlockBytes = 256;

uint64_t mix(uint64_t value) {
  value *= 0x9E3779B97F4A7C15ull;
  return value ^ value >> 32;
}

}  // namespace

struct BlockEncoder::Object {
  model::FdKind fd_kind;
  uint64_t arg;
  bool operator==(const Object&) const = default;
};

// Distinct values of a block in order of first sight, by open addressing.
template <class Key>
class BlockEncoder::Dictionary {
 public:
  void clear() {
    keys_.clear();
    hashes_.clear();
    std::fill(slots_.begin(), slots_.end(), 0);
  }
  uint32_t index_of(const Key& key, uint64_t hash) {
    if (keys_.size() * 2 >= slots_.size()) grow();
    size_t mask = slots_.size() - 1;
    for (size_t slot = mix(hash) & mask;; slot = (slot + 1) & mask) {
      if (slots_[slot] == 0) {
        keys_.push_back(key);
        hashes_.push_back(hash);
        slots_[slot] = static_cast<uint32_t>(keys_.size());
        return slots_[slot] - 1;
      }
      if (keys_[slots_[slot] - 1] == key) return slots_[slot] - 1;
    }
  }
  const std::vector<Key>& keys() const { return keys_; }

 private:
  void grow() {
    slots_.assign(std::max<size_t>(slots_.size() * 2, 256), 0);
    size_t mask = slots_.size() - 1;
    for (size_t i = 0; i < keys_.size(); ++i) {
      size_t slot = mix(hashes_[i]) & mask;
      while (slots_[slot] != 0) slot = (slot + 1) & mask;
      slots_[slot] = static_cast<uint32_t>(i + 1);
    }
  }

  std::vector<Key> keys_;
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> slots_;  // index + 1 into keys_; 0 is free
};

BlockEncoder::BlockEncoder()
    : zstd_(ZSTD_createCCtx(), ZSTD_freeCCtx),
      shapes_(std::make_unique<Dictionary<uint64_t>>()),
      objects_(std::make_unique<Dictionary<Object>>()),
      waker_stacks_(std::make_unique<Dictionary<uint64_t>>()) {
  ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_compressionLevel, kZstdLevel);
  ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_checksumFlag, 1);
}

BlockEncoder::~BlockEncoder() = default;

void BlockEncoder::begin_columns() {
  for (ByteWriter& column : columns_) column.clear();
  shapes_->clear();
  objects_->clear();
  waker_stacks_->clear();
}

Result<std::span<const uint8_t>> BlockEncoder::seal(uint8_t kind, size_t rows, TimeNs base,
                                                    size_t columns, uint32_t per_row_columns) {
  raw_.clear();
  cuts_.clear();
  raw_.varint(kind);
  raw_.varint(rows);
  raw_.signed_varint(base);
  raw_.varint(columns);
  for (size_t i = 0; i < columns; ++i) raw_.varint(columns_[i].bytes().size());
  for (size_t i = 0; i < columns; ++i) {
    cuts_.push_back(raw_.bytes().size());
    if (!(per_row_columns >> i & 1)) {
      raw_.append(columns_[i].bytes());
      continue;
    }
    size_t at = raw_.bytes().size();
    for (size_t size : raw_.append_planes(columns_[i].bytes())) cuts_.push_back(at += size);
  }
  return compress();
}

// zstd is told to end its own blocks where columns and planes end, so that each is coded with its
// own statistics: that saves 12 % against one call, at no cost.
Result<std::span<const uint8_t>> BlockEncoder::compress() {
  std::span<const uint8_t> raw = raw_.bytes();
  // Each zstd block has 3 bytes of header and may be stored as it is.
  compressed_.resize(
      std::max(compressed_.size(), ZSTD_compressBound(raw.size()) + 8 * (cuts_.size() + 1)));
  ZSTD_CCtx_reset(zstd_.get(), ZSTD_reset_session_only);
  ZSTD_CCtx_setPledgedSrcSize(zstd_.get(), raw.size());
  ZSTD_outBuffer out{compressed_.data(), compressed_.size(), 0};
  ZSTD_inBuffer in{raw.data(), 0, 0};
  cuts_.push_back(raw.size());
  for (size_t cut : cuts_) {
    bool last = cut == raw.size();
    if (!last && cut - in.pos < kMinZstdBlockBytes) continue;
    in.size = cut;
    size_t left = 1;
    while (left != 0) {
      left = ZSTD_compressStream2(zstd_.get(), &out, &in, last ? ZSTD_e_end : ZSTD_e_flush);
      if (ZSTD_isError(left)) {
        return fail("a block cannot be compressed: {}", ZSTD_getErrorName(left));
      }
      if (left != 0 && out.pos == out.size) compressed_.resize(compressed_.size() * 2);
      out.dst = compressed_.data();
      out.size = compressed_.size();
    }
    if (last) break;
  }
  return std::span<const uint8_t>(compressed_.data(), out.pos);
}

namespace {

// Calls per_thread for each run of one thread's rows and writes the runs: (thread delta, length).
template <class Row, class PerThread>
void for_each_run(std::span<const Row> rows, ByteWriter& runs, const PerThread& per_thread) {
  uint32_t previous = 0;
  for (size_t begin = 0; begin < rows.size();) {
    uint32_t thread = rows[begin].thread.value;
    size_t end = begin + 1;
    while (end < rows.size() && rows[end].thread.value == thread) ++end;
    runs.signed_varint(int64_t{thread} - int64_t{previous});
    runs.varint(end - begin);
    per_thread(rows.subspan(begin, end - begin));
    previous = thread;
    begin = end;
  }
}

}  // namespace

Result<std::span<const uint8_t>> BlockEncoder::encode(std::span<const model::Sample> rows) {
  using namespace sample_layout;
  begin_columns();
  TimeNs base = totals_of(rows).begin_ns;
  int64_t weight = 0;
  for_each_run(rows, columns_[kThreadRuns], [&](std::span<const model::Sample> run) {
    TimeNs previous = base;
    for (const model::Sample& row : run) {
      columns_[kTime].signed_varint(wrapping_sub(row.time, previous));
      columns_[kStackIndex].varint(shapes_->index_of(row.stack.value, row.stack.value));
      columns_[kWeight].signed_varint(wrapping_sub(row.weight_ns, weight));
      columns_[kCpu].varint(row.cpu);
      previous = row.time;
      weight = row.weight_ns;
    }
  });
  for (uint64_t stack : shapes_->keys()) columns_[kStacks].varint(stack);
  return seal(kKind, rows.size(), base, kColumnCount, kPerRowColumns);
}

Result<std::span<const uint8_t>> BlockEncoder::encode(std::span<const model::Wait> rows) {
  using namespace wait_layout;
  begin_columns();
  TimeNs base = totals_of(rows).begin_ns;
  for_each_run(rows, columns_[kThreadRuns], [&](std::span<const model::Wait> run) {
    TimeNs previous_end = base;
    for (const model::Wait& row : run) {
      columns_[kGap].signed_varint(wrapping_sub(row.start, previous_end));
      columns_[kDuration].varint(static_cast<uint64_t>(row.duration_ns));
      columns_[kRunqueue].varint(runqueue_code(row.duration_ns, row.runqueue_ns));
      uint64_t shape = pack_shape(row);
      columns_[kShapeIndex].varint(shapes_->index_of(shape, shape));
      Object object{row.fd_kind, row.arg};
      columns_[kObjectIndex].varint(
          objects_->index_of(object, row.arg ^ uint64_t{static_cast<uint8_t>(row.fd_kind)} << 56));
      columns_[kWaker].varint(uint32_t{row.waker.value + 1});
      columns_[kWakerStackIndex].varint(
          waker_stacks_->index_of(row.waker_stack.value, row.waker_stack.value));
      columns_[kOwner].varint(uint32_t{row.owner.value + 1});
      columns_[kWakeup].varint(static_cast<uint64_t>(row.wakeup_ns));
      previous_end = row.start + row.duration_ns;
    }
  });
  for (uint64_t shape : shapes_->keys()) {
    columns_[kShapes].varint(shape_stack(shape));
    columns_[kShapes].varint(shape_flags(shape));
    columns_[kShapes].varint(static_cast<uint16_t>(shape_syscall(shape) + 1));
  }
  for (const Object& object : objects_->keys()) {
    columns_[kObjects].varint(static_cast<uint8_t>(object.fd_kind));
    columns_[kObjects].varint(object.arg);
  }
  for (uint64_t stack : waker_stacks_->keys()) columns_[kWakerStacks].varint(stack);
  return seal(kKind, rows.size(), base, kColumnCount, kPerRowColumns);
}

Result<std::span<const uint8_t>> BlockEncoder::encode(std::span<const model::HeapAlloc> rows) {
  using namespace heap_alloc_layout;
  begin_columns();
  TimeNs base = totals_of(rows).begin_ns;
  int64_t id = 0, rate = 0;
  for_each_run(rows, columns_[kThreadRuns], [&](std::span<const model::HeapAlloc> run) {
    TimeNs previous = base;
    for (const model::HeapAlloc& row : run) {
      columns_[kTime].signed_varint(wrapping_sub(row.time, previous));
      columns_[kStackIndex].varint(shapes_->index_of(row.stack.value, row.stack.value));
      columns_[kId].signed_varint(wrapping_sub(static_cast<int64_t>(row.id), id));
      columns_[kSize].varint(row.size_bytes);
      columns_[kRate].signed_varint(wrapping_sub(static_cast<int64_t>(row.rate_bytes), rate));
      columns_[kFunction].varint(static_cast<uint8_t>(row.function));
      previous = row.time;
      id = static_cast<int64_t>(row.id);
      rate = static_cast<int64_t>(row.rate_bytes);
    }
  });
  for (uint64_t stack : shapes_->keys()) columns_[kStacks].varint(stack);
  return seal(kKind, rows.size(), base, kColumnCount, kPerRowColumns);
}

Result<std::span<const uint8_t>> BlockEncoder::encode(std::span<const model::HeapFree> rows) {
  using namespace heap_free_layout;
  begin_columns();
  TimeNs base = totals_of(rows).begin_ns;
  int64_t id = 0;
  for_each_run(rows, columns_[kThreadRuns], [&](std::span<const model::HeapFree> run) {
    TimeNs previous = base;
    for (const model::HeapFree& row : run) {
      columns_[kTime].signed_varint(wrapping_sub(row.time, previous));
      columns_[kId].signed_varint(wrapping_sub(static_cast<int64_t>(row.id), id));
      previous = row.time;
      id = static_cast<int64_t>(row.id);
    }
  });
  return seal(kKind, rows.size(), base, kColumnCount, kPerRowColumns);
}

}  // namespace assay::run
