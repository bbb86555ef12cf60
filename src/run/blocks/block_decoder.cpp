#include <algorithm>

#include <zstd.h>

#include "run/blocks/block_codec.h"
#include "run/blocks/block_layout.h"

namespace assay::run {

SampleTotals totals_of(std::span<const model::Sample> rows) {
  if (rows.empty()) return {};
  SampleTotals totals{rows[0].time, rows[0].time, static_cast<int64_t>(rows.size()), 0};
  for (const model::Sample& row : rows) {
    totals.begin_ns = std::min(totals.begin_ns, row.time);
    totals.end_ns = std::max(totals.end_ns, row.time);
    totals.weight_ns = wrapping_add(totals.weight_ns, row.weight_ns);
  }
  return totals;
}

WaitTotals totals_of(std::span<const model::Wait> rows) {
  if (rows.empty()) return {};
  WaitTotals totals{rows[0].start, rows[0].start, static_cast<int64_t>(rows.size()), 0, 0};
  for (const model::Wait& row : rows) {
    totals.begin_ns = std::min(totals.begin_ns, row.start);
    totals.end_ns = std::max(totals.end_ns, row.start + row.duration_ns);
    totals.blocked_ns = wrapping_add(totals.blocked_ns, row.duration_ns - row.runqueue_ns);
    totals.runqueue_ns = wrapping_add(totals.runqueue_ns, row.runqueue_ns);
  }
  return totals;
}

HeapAllocTotals totals_of(std::span<const model::HeapAlloc> rows) {
  if (rows.empty()) return {};
  HeapAllocTotals totals{rows[0].time, rows[0].time, static_cast<int64_t>(rows.size()), 0};
  for (const model::HeapAlloc& row : rows) {
    totals.begin_ns = std::min(totals.begin_ns, row.time);
    totals.end_ns = std::max(totals.end_ns, row.time);
    totals.bytes = wrapping_add(totals.bytes, static_cast<int64_t>(row.size_bytes));
  }
  return totals;
}

HeapFreeTotals totals_of(std::span<const model::HeapFree> rows) {
  if (rows.empty()) return {};
  HeapFreeTotals totals{rows[0].time, rows[0].time, static_cast<int64_t>(rows.size())};
  for (const model::HeapFree& row : rows) {
    totals.begin_ns = std::min(totals.begin_ns, row.time);
    totals.end_ns = std::max(totals.end_ns, row.time);
  }
  return totals;
}

bool is_storable(const model::Wait& wait) {
  TimeNs end = 0;
  return wait.runqueue_ns >= 0 && wait.runqueue_ns <= wait.duration_ns && wait.wakeup_ns >= 0 &&
         wait.wakeup_ns <= wait.duration_ns - wait.runqueue_ns &&
         wait.fd_kind <= model::kLastFdKind &&
         !__builtin_add_overflow(wait.start, wait.duration_ns, &end);
}

namespace {

struct RawBlock {
  size_t rows = 0;
  size_t column_count = 0;
  TimeNs base = 0;
  std::array<ByteReader, kMaxColumns> lists;     // thread runs and dictionaries
  std::array<PlaneReader, kMaxColumns> columns;  // one number a row
};

// A block may have fewer columns than this version knows, down to `fewest_columns`: the others were
// added later.
Result<RawBlock> open_raw(std::span<const uint8_t> raw, uint8_t kind, size_t fewest_columns,
                          size_t known_columns, uint32_t per_row_columns) {
  ByteReader in(raw);
  RawBlock block;
  if (in.varint() != kind) return fail("it holds another kind of block");
  uint64_t rows = in.varint();
  // Every row has at least one byte in some column, so a small blob cannot claim many rows.
  if (rows > kMaxBlockRows || rows > raw.size()) return fail("its row count is impossible");
  block.rows = static_cast<size_t>(rows);
  block.base = signed_varint(in);
  uint64_t columns = in.varint();
  if (!in.ok() || columns < fewest_columns || columns > kMaxColumns) {
    return fail("its column count is impossible");
  }
  block.column_count = static_cast<size_t>(columns);
  std::array<uint64_t, kMaxColumns> sizes{};
  for (size_t i = 0; i < columns; ++i) sizes[i] = in.varint();
  for (size_t i = 0; i < columns; ++i) {
    std::span<const uint8_t> bytes = in.octets(sizes[i]);
    bool per_row = i < known_columns && (per_row_columns >> i & 1);
    if (per_row && !block.columns[i].start(bytes, block.rows)) {
      return fail("column {} does not have one number a row", i);
    }
    if (!per_row) block.lists[i] = ByteReader(bytes);
  }
  if (!in.ok() || in.left() != 0) return fail("its columns do not fill it");
  return block;
}

// The column of thread runs, one row at a time.
class ThreadRuns {
 public:
  explicit ThreadRuns(ByteReader column) : column_(column) {}
  // Moves to the next row; true when it begins another thread.
  bool next() {
    bool begins = left_ == 0;
    if (begins) {
      thread_ += static_cast<uint64_t>(signed_varint(column_));
      left_ = column_.varint();
      bad_ = bad_ || thread_ > UINT32_MAX || left_ == 0;
      if (left_ == 0) left_ = 1;
    }
    --left_;
    return begins;
  }
  model::ThreadId thread() const { return {static_cast<uint32_t>(thread_)}; }
  bool bad() const { return bad_ || !column_.ok(); }
  bool at_end() const { return left_ == 0 && column_.left() == 0; }

 private:
  ByteReader column_;
  uint64_t thread_ = 0;
  uint64_t left_ = 0;
  bool bad_ = false;
};

Result<void> check_runs(const ThreadRuns& runs) {
  if (runs.bad() || !runs.at_end()) return fail("its thread runs do not match its rows");
  return {};
}

struct Shape {
  model::StackId stack;
  uint16_t flags;
  uint16_t syscall;
};
struct Object {
  model::FdKind fd_kind;
  uint64_t arg;
};

Result<std::vector<model::StackId>> read_stacks(ByteReader column) {
  std::vector<model::StackId> stacks;
  while (column.left() != 0) {
    uint64_t stack = column.varint();
    if (!column.ok() || stack > UINT32_MAX) return fail("its stacks are damaged");
    stacks.push_back({static_cast<uint32_t>(stack)});
  }
  return stacks;
}

Result<std::vector<Shape>> read_shapes(ByteReader column) {
  std::vector<Shape> shapes;
  while (column.left() != 0) {
    uint64_t stack = column.varint(), flags = column.varint(), syscall = column.varint();
    if (!column.ok() || stack > UINT32_MAX || flags > UINT16_MAX || syscall > UINT16_MAX) {
      return fail("its dictionary of wait shapes is damaged");
    }
    shapes.push_back({{static_cast<uint32_t>(stack)},
                      static_cast<uint16_t>(flags),
                      static_cast<uint16_t>(syscall - 1)});
  }
  return shapes;
}

Result<std::vector<Object>> read_objects(ByteReader column) {
  std::vector<Object> objects;
  while (column.left() != 0) {
    uint64_t fd_kind = column.varint(), arg = column.varint();
    if (!column.ok() || fd_kind > static_cast<uint64_t>(model::kLastFdKind)) {
      return fail("its dictionary of wait objects is damaged");
    }
    objects.push_back({static_cast<model::FdKind>(fd_kind), arg});
  }
  return objects;
}

}  // namespace

BlockDecoder::BlockDecoder() : zstd_(ZSTD_createDCtx(), ZSTD_freeDCtx) {}
BlockDecoder::~BlockDecoder() = default;

Result<std::span<const uint8_t>> BlockDecoder::decompress(std::span<const uint8_t> blob) {
  unsigned long long size = ZSTD_getFrameContentSize(blob.data(), blob.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
    return fail("it is not a zstd frame of known size");
  }
  if (size > kMaxRawBlockBytes) {
    return fail("it claims {} bytes, more than the {} a block may have", size, kMaxRawBlockBytes);
  }
  raw_.resize(std::max(raw_.size(), static_cast<size_t>(size)));
  size_t got = ZSTD_decompressDCtx(zstd_.get(), raw_.data(), static_cast<size_t>(size), blob.data(),
                                   blob.size());
  if (ZSTD_isError(got)) return fail("zstd says: {}", ZSTD_getErrorName(got));
  return std::span<const uint8_t>(raw_.data(), got);
}

Result<void> BlockDecoder::decode_raw(std::span<const uint8_t> raw,
                                      std::vector<model::Sample>& rows) {
  using namespace sample_layout;
  rows.clear();
  auto block = open_raw(raw, kKind, kColumnCount, kColumnCount, kPerRowColumns);
  if (!block) return std::unexpected(block.error());
  auto& columns = block->columns;
  auto read = read_stacks(block->lists[kStacks]);
  if (!read) return std::unexpected(read.error());
  const std::vector<model::StackId>& stacks = *read;
  rows.reserve(block->rows);
  ThreadRuns runs(block->lists[kThreadRuns]);
  model::Sample row;
  for (size_t i = 0; i < block->rows; ++i) {
    TimeNs previous = runs.next() ? block->base : row.time;
    row.time = wrapping_add(previous, columns[kTime].next_signed());
    row.thread = runs.thread();
    row.weight_ns = wrapping_add(row.weight_ns, columns[kWeight].next_signed());
    uint64_t cpu = columns[kCpu].next(), index = columns[kStackIndex].next();
    if (cpu > UINT16_MAX) return fail("row {} has CPU number {}", i, cpu);
    if (index >= stacks.size()) return fail("row {} has no stack", i);
    row.cpu = static_cast<uint16_t>(cpu);
    row.stack = stacks[index];
    rows.push_back(row);
  }
  return check_runs(runs);
}

Result<void> BlockDecoder::decode_raw(std::span<const uint8_t> raw,
                                      std::vector<model::Wait>& rows) {
  using namespace wait_layout;
  rows.clear();
  auto block = open_raw(raw, kKind, kFewestColumns, kColumnCount, kPerRowColumns);
  if (!block) return std::unexpected(block.error());
  auto& columns = block->columns;
  auto shapes = read_shapes(block->lists[kShapes]);
  if (!shapes) return std::unexpected(shapes.error());
  auto objects = read_objects(block->lists[kObjects]);
  if (!objects) return std::unexpected(objects.error());
  bool tells_holders = block->column_count > kOwner;
  bool tells_wakeups = block->column_count > kWakeup;
  auto waker_stacks = read_stacks(block->lists[kWakerStacks]);
  if (!waker_stacks) return std::unexpected(waker_stacks.error());
  rows.reserve(block->rows);
  ThreadRuns runs(block->lists[kThreadRuns]);
  TimeNs previous_end = 0;
  for (size_t i = 0; i < block->rows; ++i) {
    model::Wait row;
    if (runs.next()) previous_end = block->base;
    row.thread = runs.thread();
    row.start = wrapping_add(previous_end, columns[kGap].next_signed());
    row.duration_ns = static_cast<int64_t>(columns[kDuration].next());
    uint64_t code = columns[kRunqueue].next();
    row.runqueue_ns = code == 0 ? 0 : code == 1 ? row.duration_ns : static_cast<int64_t>(code - 1);
    uint64_t shape = columns[kShapeIndex].next(), object = columns[kObjectIndex].next();
    uint64_t waker = columns[kWaker].next();
    if (shape >= shapes->size() || object >= objects->size() || waker > UINT32_MAX) {
      return fail("row {} refers to nothing", i);
    }
    row.stack = (*shapes)[shape].stack;
    row.flags = (*shapes)[shape].flags;
    row.syscall = (*shapes)[shape].syscall;
    row.fd_kind = (*objects)[object].fd_kind;
    row.arg = (*objects)[object].arg;
    row.waker = {static_cast<uint32_t>(waker - 1)};
    if (tells_holders) {
      uint64_t stack = columns[kWakerStackIndex].next(), owner = columns[kOwner].next();
      if (stack >= waker_stacks->size() || owner > UINT32_MAX)
        return fail("row {} refers to nothing", i);
      row.waker_stack = (*waker_stacks)[stack];
      row.owner = {static_cast<uint32_t>(owner - 1)};
    }
    if (tells_wakeups) row.wakeup_ns = static_cast<int64_t>(columns[kWakeup].next());
    if (!is_storable(row)) return fail("row {} has impossible times", i);
    previous_end = row.start + row.duration_ns;
    rows.push_back(row);
  }
  return check_runs(runs);
}

Result<void> BlockDecoder::decode_raw(std::span<const uint8_t> raw,
                                      std::vector<model::HeapAlloc>& rows) {
  using namespace heap_alloc_layout;
  rows.clear();
  auto block = open_raw(raw, kKind, kColumnCount, kColumnCount, kPerRowColumns);
  if (!block) return std::unexpected(block.error());
  auto& columns = block->columns;
  auto stacks = read_stacks(block->lists[kStacks]);
  if (!stacks) return std::unexpected(stacks.error());
  rows.reserve(block->rows);
  ThreadRuns runs(block->lists[kThreadRuns]);
  model::HeapAlloc row;
  row.rate_bytes = 0;
  for (size_t i = 0; i < block->rows; ++i) {
    TimeNs previous = runs.next() ? block->base : row.time;
    row.time = wrapping_add(previous, columns[kTime].next_signed());
    row.thread = runs.thread();
    row.id += static_cast<uint64_t>(columns[kId].next_signed());
    row.size_bytes = columns[kSize].next();
    row.rate_bytes += static_cast<uint64_t>(columns[kRate].next_signed());
    uint64_t function = columns[kFunction].next(), index = columns[kStackIndex].next();
    if (function >= model::kHeapFunctionCount) return fail("row {} has no function", i);
    if (index >= stacks->size()) return fail("row {} has no stack", i);
    row.function = static_cast<model::HeapFunction>(function);
    row.stack = (*stacks)[index];
    rows.push_back(row);
  }
  return check_runs(runs);
}

Result<void> BlockDecoder::decode_raw(std::span<const uint8_t> raw,
                                      std::vector<model::HeapFree>& rows) {
  using namespace heap_free_layout;
  rows.clear();
  auto block = open_raw(raw, kKind, kColumnCount, kColumnCount, kPerRowColumns);
  if (!block) return std::unexpected(block.error());
  auto& columns = block->columns;
  rows.reserve(block->rows);
  ThreadRuns runs(block->lists[kThreadRuns]);
  model::HeapFree row;
  for (size_t i = 0; i < block->rows; ++i) {
    TimeNs previous = runs.next() ? block->base : row.time;
    row.time = wrapping_add(previous, columns[kTime].next_signed());
    row.thread = runs.thread();
    row.id += static_cast<uint64_t>(columns[kId].next_signed());
    rows.push_back(row);
  }
  return check_runs(runs);
}

Result<void> BlockDecoder::decode(std::span<const uint8_t> blob,
                                  std::vector<model::HeapAlloc>& rows) {
  auto raw = decompress(blob);
  if (!raw) return std::unexpected(raw.error());
  return decode_raw(*raw, rows);
}

Result<void> BlockDecoder::decode(std::span<const uint8_t> blob,
                                  std::vector<model::HeapFree>& rows) {
  auto raw = decompress(blob);
  if (!raw) return std::unexpected(raw.error());
  return decode_raw(*raw, rows);
}

Result<void> BlockDecoder::decode(std::span<const uint8_t> blob, std::vector<model::Sample>& rows) {
  auto raw = decompress(blob);
  if (!raw) return std::unexpected(raw.error());
  return decode_raw(*raw, rows);
}

Result<void> BlockDecoder::decode(std::span<const uint8_t> blob, std::vector<model::Wait>& rows) {
  auto raw = decompress(blob);
  if (!raw) return std::unexpected(raw.error());
  return decode_raw(*raw, rows);
}

}  // namespace assay::run
