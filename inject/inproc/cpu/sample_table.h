// SampleTable: stacks with counts, added to from signal handlers and lock hooks.
//
// In: stacks of any thread, in any context: add() neither locks nor allocates nor waits. Out: the
// rows, read at any time by a server thread; a row's stack never changes. The same stack may have
// two rows (two threads added it at the same time); readers merge by stack. Failures: a full table
// drops the sample and counts it in dropped(). Memory: address space is taken at open(), pages only
// as rows are filled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace assay::inproc {

struct SampleRow {
  uint32_t label;  // a LabelSet of label_table.h, 0: none
  uint32_t kind;   // meaning defined by the owner of the table
  uint32_t frames;
  const uintptr_t* pcs;  // innermost first
  int64_t count;
  int64_t value;
};

class SampleTable {
 public:
  static constexpr uint32_t kNoRow = UINT32_MAX;

  // Call once. False: no memory.
  bool open(uint32_t rows_log2, uint32_t frame_words);
  bool is_open() const { return slots_ != nullptr; }

  // Async-signal-safe. The row, or kNoRow when it was dropped.
  uint32_t add(const uintptr_t* pcs, uint32_t frames, uint32_t label, uint32_t kind, int64_t count,
               int64_t value);

  // Rows are 0..rows()-1; false: there is nothing in this one.
  uint32_t rows() const { return mask_ + 1; }
  bool row(uint32_t index, SampleRow& out) const;
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  void count_dropped(uint64_t count) { dropped_.fetch_add(count, std::memory_order_relaxed); }

  // Empties it. No add() may be under way.
  void clear();

 private:
  enum State : uint32_t { kEmpty, kReady };
  struct Slot {
    std::atomic<uint64_t> hash;  // 0: free; taken by compare-and-swap
    std::atomic<uint32_t> state;
    uint32_t label, kind, frames;
    uint64_t first_frame;
    std::atomic<int64_t> count, value;
  };
  bool same(const Slot& slot, const uintptr_t* pcs, uint32_t frames, uint32_t label,
            uint32_t kind) const;
  bool fill(Slot& slot, const uintptr_t* pcs, uint32_t frames, uint32_t label, uint32_t kind);

  Slot* slots_ = nullptr;
  uintptr_t* frames_ = nullptr;
  uint32_t mask_ = 0;
  uint64_t frame_words_ = 0;
  std::atomic<uint64_t> used_frames_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
};

}  // namespace assay::inproc
