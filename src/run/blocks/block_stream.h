// BlockStream: the samples, waits or heap events of an open run, one decoded block at a time.
//
// Blocks outside the time range (and, if given, of other processes) are skipped undecoded; rows
// inside a block are not filtered. Every row's thread, stack and waker exist, and the block's
// totals agree with its rows. Not thread-safe. Failures: an Error names the file, the block and
// what is wrong.
#pragma once

#include <optional>
#include <vector>

#include "run/blocks/block_codec.h"
#include "run/reader.h"
#include "run/file/sqlite.h"

namespace assay::run {

inline bool in_range(const model::Sample& row, const TimeRange& range) {
  return row.time >= range.begin_ns && row.time < range.end_ns;
}
// By overlap; a wait with duration 0 counts at its start.
inline bool in_range(const model::Wait& row, const TimeRange& range) {
  return row.start < range.end_ns &&
         (row.start >= range.begin_ns || row.start + row.duration_ns > range.begin_ns);
}

inline bool in_range(const model::HeapAlloc& row, const TimeRange& range) {
  return row.time >= range.begin_ns && row.time < range.end_ns;
}
inline bool in_range(const model::HeapFree& row, const TimeRange& range) {
  return row.time >= range.begin_ns && row.time < range.end_ns;
}

template <class Row>
class BlockStream {
 public:
  // Both must outlive the stream.
  BlockStream(const Database& database, const Contents& contents)
      : database_(&database), contents_(&contents) {}

  Result<void> start(const TimeRange& range, std::optional<uint32_t> process = std::nullopt);
  Result<bool> next();  // false at the end
  const std::vector<Row>& rows() const { return rows_; }
  // Takes the block's rows and leaves `spare`, whose memory the next block uses.
  std::vector<Row> exchange_rows(std::vector<Row> spare) {
    rows_.swap(spare);
    return spare;
  }

 private:
  Result<void> check_rows(int64_t block) const;

  const Database* database_;
  const Contents* contents_;
  Statement statement_;
  BlockDecoder decoder_;
  std::vector<Row> rows_;
  bool missing_ = false;  // the run has no such table
};

extern template class BlockStream<model::Sample>;
extern template class BlockStream<model::Wait>;
extern template class BlockStream<model::HeapAlloc>;
extern template class BlockStream<model::HeapFree>;

}  // namespace assay::run
