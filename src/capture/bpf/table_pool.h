// TablePool: unwind tables of modules laid out for the programs, in chunks of words.
//
// In: a module's index and rows (unwind/table/table_format.h). Out: where its index begins and what
// its row numbers count from. All the rows that a page of text needs lie in one chunk, the row that
// holds at the page's beginning first, so that the program searches within one piece of memory.
// Chunks come from `new_chunk` as they are needed; placed tables never move. Threads: one owner.
// Failures: nullopt when the pool is full, no chunk can be allocated, or a module is too large.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace assay::capture {

class TablePool {
 public:
  // Memory for chunk `number`, kChunkWords words of zero; null when it cannot be allocated.
  using NewChunk = std::function<uint32_t*(uint32_t number)>;
  struct Place {
    uint32_t index_at = 0;
    uint32_t rows_at = 0;
  };

  explicit TablePool(NewChunk new_chunk) : new_chunk_(std::move(new_chunk)) {}

  // `index`: the number of the first row at or after each page, and one more. `before`: the row
  // that holds before the first.
  std::optional<Place> add(std::span<const uint32_t> index, std::span<const uint32_t> rows,
                           uint32_t before);
  size_t words() const { return next_; }
  size_t bytes() const { return chunks_.size() * kChunkBytes; }

  static constexpr size_t kChunkBytes = 65536 * sizeof(uint32_t);

 private:
  bool grow_to(uint64_t words);
  uint32_t& at(uint64_t word);

  NewChunk new_chunk_;
  std::vector<uint32_t*> chunks_;
  uint64_t next_ = 1;  // word 0 is not used: it means "no table"
};

}  // namespace assay::capture
