#include "run/blocks/block_stream.h"

#include "run/file/open_file.h"

namespace assay::run {
namespace {

template <class Row>
struct Kind;

template <>
struct Kind<model::Sample> {
  static constexpr const char* kName = "sample block";
  static constexpr const char* kSql =
      "SELECT id, process, begin_ns, end_ns, count, weight_ns, data FROM sample_block "
      "WHERE end_ns >= ?1 AND begin_ns < ?2 AND (?3 IS NULL OR process = ?3) ORDER BY id";
  static constexpr int kDataColumn = 6;
  static SampleTotals stored(const Statement& row) {
    return {row.i64(2), row.i64(3), row.i64(4), row.i64(5)};
  }
  static const char* unknown_party(const model::Sample&, size_t, size_t) { return nullptr; }
};

template <>
struct Kind<model::Wait> {
  static constexpr const char* kName = "wait block";
  static constexpr const char* kSql =
      "SELECT id, process, begin_ns, end_ns, count, blocked_ns, runqueue_ns, data FROM wait_block "
      "WHERE end_ns >= ?1 AND begin_ns < ?2 AND (?3 IS NULL OR process = ?3) ORDER BY id";
  static constexpr int kDataColumn = 7;
  static WaitTotals stored(const Statement& row) {
    return {row.i64(2), row.i64(3), row.i64(4), row.i64(5), row.i64(6)};
  }
  // Which of a wait's waker and lock holder does not exist; null when both do.
  static const char* unknown_party(const model::Wait& row, size_t threads, size_t stacks) {
    if (row.waker != model::Wait::kNoWaker && row.waker.value >= threads)
      return "a waker that does not exist";
    if (row.owner != model::Wait::kNoOwner && row.owner.value >= threads)
      return "a lock owner that does not exist";
    return row.waker_stack.value >= stacks ? "a waker's stack that does not exist" : nullptr;
  }
};

template <>
struct Kind<model::HeapAlloc> {
  static constexpr const char* kName = "heap block";
  static constexpr const char* kTable = "heap_block";
  static constexpr const char* kSql =
      "SELECT id, process, begin_ns, end_ns, count, bytes, data FROM heap_block "
      "WHERE end_ns >= ?1 AND begin_ns < ?2 AND (?3 IS NULL OR process = ?3) ORDER BY id";
  static constexpr int kDataColumn = 6;
  static HeapAllocTotals stored(const Statement& row) {
    return {row.i64(2), row.i64(3), row.i64(4), row.i64(5)};
  }
  static const char* unknown_party(const model::HeapAlloc&, size_t, size_t) { return nullptr; }
};

template <>
struct Kind<model::HeapFree> {
  static constexpr const char* kName = "block of frees";
  static constexpr const char* kTable = "heap_free_block";
  static constexpr const char* kSql =
      "SELECT id, process, begin_ns, end_ns, count, data FROM heap_free_block "
      "WHERE end_ns >= ?1 AND begin_ns < ?2 AND (?3 IS NULL OR process = ?3) ORDER BY id";
  static constexpr int kDataColumn = 5;
  static HeapFreeTotals stored(const Statement& row) {
    return {row.i64(2), row.i64(3), row.i64(4)};
  }
  static const char* unknown_party(const model::HeapFree&, size_t, size_t) { return nullptr; }
};

// Runs recorded before Assay had heap profiles lack these tables.
template <class Row>
bool is_missing(const Database& database) {
  if constexpr (requires { Kind<Row>::kTable; }) {
    auto there = database.query_int(
        fmt::format("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '{}' "
                    "AND sql NOT LIKE 'CREATE VIRTUAL%'",
                    Kind<Row>::kTable)
            .c_str());
    return !there || *there == 0;
  }
  return false;
}

template <class Row>
size_t stack_of(const Row& row) {
  if constexpr (requires { row.stack; }) return row.stack.value;
  return 0;
}

}  // namespace

template <class Row>
Result<void> BlockStream<Row>::start(const TimeRange& range, std::optional<uint32_t> process) {
  rows_.clear();
  missing_ = is_missing<Row>(*database_);
  if (missing_) return {};
  auto statement = Statement::prepare(*database_, Kind<Row>::kSql);
  if (!statement) return std::unexpected(statement.error());
  statement_ = std::move(*statement);
  statement_.bind(range.begin_ns).bind(range.end_ns);
  if (process) {
    statement_.bind(*process);
  } else {
    statement_.bind_null();
  }
  return {};
}

template <class Row>
Result<bool> BlockStream<Row>::next() {
  rows_.clear();
  if (missing_) return false;
  auto row = statement_.next();
  if (!row) return damaged(database_->path(), row.error().what);
  if (!*row) return false;
  int64_t block = statement_.i64(0);
  auto decoded = decoder_.decode(statement_.blob(Kind<Row>::kDataColumn), rows_);
  if (!decoded) {
    return damaged(database_->path(),
                   fmt::format("{} {}: {}", Kind<Row>::kName, block, decoded.error().what));
  }
  if (totals_of(std::span<const Row>(rows_)) != Kind<Row>::stored(statement_)) {
    return damaged(database_->path(),
                   fmt::format("{} {}: its totals do not match its rows", Kind<Row>::kName, block));
  }
  if (auto checked = check_rows(block); !checked) return std::unexpected(checked.error());
  return true;
}

template <class Row>
Result<void> BlockStream<Row>::check_rows(int64_t block) const {
  // Does not check that the thread still belongs to this process: exec moves a thread to another
  // Process.
  if (static_cast<uint64_t>(statement_.i64(1)) >= contents_->processes.size()) {
    return damaged(database_->path(),
                   fmt::format("{} {} belongs to no process", Kind<Row>::kName, block));
  }
  size_t threads = contents_->threads.size(), stacks = contents_->stacks.size();
  for (const Row& row : rows_) {
    const char* wrong = nullptr;
    if (row.thread.value >= threads) {
      wrong = "a thread that does not exist";
    } else if (stack_of(row) >= stacks) {
      wrong = "a stack that does not exist";
    } else {
      wrong = Kind<Row>::unknown_party(row, threads, stacks);
    }
    if (wrong != nullptr) {
      return damaged(database_->path(),
                     fmt::format("{} {} refers to {}", Kind<Row>::kName, block, wrong));
    }
  }
  return {};
}

template class BlockStream<model::Sample>;
template class BlockStream<model::Wait>;
template class BlockStream<model::HeapAlloc>;
template class BlockStream<model::HeapFree>;

}  // namespace assay::run
