// CellMap: sums of time and counts by a 64-bit key, with open addressing.
//
// A selection of a large run touches millions of (bin, thread, state, node) cells; node-based
// std::unordered_map takes several times as long. Keys are never kFree. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace assay::view {

struct Cell {
  uint64_t key = UINT64_MAX;
  int64_t ns = 0;
  uint64_t count = 0;
};

class CellMap {
 public:
  static constexpr uint64_t kFree = UINT64_MAX;

  // `room` cells at first, a power of two.
  explicit CellMap(size_t room = 1 << 10) : cells_(room) {}

  void add(uint64_t key, int64_t ns, uint64_t count) {
    if (used_ * 2 >= cells_.size()) grow();
    Cell& cell = find(key);
    if (cell.key == kFree) {
      cell.key = key;
      ++used_;
    }
    cell.ns += ns;
    cell.count += count;
  }
  size_t size() const { return used_; }
  // Keeps its room for as many again.
  void clear() {
    std::fill(cells_.begin(), cells_.end(), Cell{});
    used_ = 0;
  }

  // By key, ascending.
  std::vector<Cell> sorted() const {
    std::vector<Cell> rows;
    rows.reserve(used_);
    for (const Cell& cell : cells_) {
      if (cell.key != kFree) rows.push_back(cell);
    }
    std::sort(rows.begin(), rows.end(), [](const Cell& a, const Cell& b) { return a.key < b.key; });
    return rows;
  }

 private:
  Cell& find(uint64_t key) {
    uint64_t hash = (key ^ key >> 29) * 0x9E3779B97F4A7C15ull;
    size_t i = (hash ^ hash >> 32) & (cells_.size() - 1);
    while (cells_[i].key != kFree && cells_[i].key != key) i = (i + 1) & (cells_.size() - 1);
    return cells_[i];
  }
  void grow() {
    std::vector<Cell> old(cells_.size() * 4);
    old.swap(cells_);
    for (const Cell& cell : old) {
      if (cell.key != kFree) find(cell.key) = cell;
    }
  }

  std::vector<Cell> cells_;
  size_t used_ = 0;
};

}  // namespace assay::view
