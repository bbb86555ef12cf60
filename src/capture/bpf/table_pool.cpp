#include "capture/bpf/table_pool.h"

#include "capture/bpf/shared.h"

namespace assay::capture {
namespace {

static_assert(TablePool::kChunkBytes == bpf::kChunkWords * sizeof(uint32_t));
constexpr uint64_t kMostRows = uint64_t{1} << (32 - bpf::kIndexCountBits);
constexpr uint64_t kMostRowsOfPage = 256;

}  // namespace

uint32_t& TablePool::at(uint64_t word) {
  return chunks_[word / bpf::kChunkWords][word % bpf::kChunkWords];
}

bool TablePool::grow_to(uint64_t words) {
  while (chunks_.size() * uint64_t{bpf::kChunkWords} < words) {
    if (chunks_.size() >= bpf::kMostChunks) return false;
    uint32_t* chunk = new_chunk_(static_cast<uint32_t>(chunks_.size()));
    if (chunk == nullptr) return false;
    chunks_.push_back(chunk);
  }
  return true;
}

std::optional<TablePool::Place> TablePool::add(std::span<const uint32_t> index,
                                               std::span<const uint32_t> rows, uint32_t before) {
  if (index.size() < 2) return std::nullopt;
  size_t pages = index.size() - 1;
  Place place{static_cast<uint32_t>(next_), static_cast<uint32_t>(next_ + pages)};
  if (!grow_to(place.rows_at)) return std::nullopt;
  uint64_t end = place.rows_at;  // of what is placed
  uint32_t last = before;        // the row that holds so far, and where it lies
  uint64_t last_at = 0;
  for (size_t page = 0; page < pages; ++page) {
    uint64_t count = index[page + 1] - index[page];
    if (index[page + 1] < index[page] || index[page + 1] > rows.size() || count > kMostRowsOfPage)
      return std::nullopt;
    // The first row must hold at the page's beginning: the page's own where it begins there; else
    // the last one so far, if it lies just before the page's rows in the same chunk; else a copy.
    bool own = count > 0 && (rows[index[page]] & 0xff) == 0;
    bool joined = last_at != 0 && last_at + 1 == end &&
                  last_at / bpf::kChunkWords == (last_at + count) / bpf::kChunkWords;
    bool alone = last_at != 0 && count == 0;
    bool copied = !own && !joined && !alone;
    uint64_t begin = last_at;
    if (own || copied) {
      uint64_t needed = count + (copied ? 1 : 0);
      if (end % bpf::kChunkWords + needed > bpf::kChunkWords)
        end = (end / bpf::kChunkWords + 1) * bpf::kChunkWords;
      begin = end;
      if (!grow_to(end + needed)) return std::nullopt;
    }
    if (copied) {
      at(end) = last;
      last_at = end++;
    }
    if (!grow_to(end + count) || begin - place.rows_at >= kMostRows) return std::nullopt;
    for (uint64_t i = 0; i < count; ++i) at(end + i) = rows[index[page] + i];
    uint64_t found_in = count + (own ? 0 : 1);
    if (count > 0) {
      last = rows[index[page + 1] - 1];
      last_at = end + count - 1;
      end += count;
    }
    at(place.index_at + page) =
        static_cast<uint32_t>((begin - place.rows_at) << bpf::kIndexCountBits | found_in);
  }
  next_ = end;
  return place;
}

}  // namespace assay::capture
