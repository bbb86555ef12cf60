// ThreadGrouper: rows in arrival order become rows by process, thread and time.
//
// Counts instead of comparing: rows arrive nearly in time order, so each thread's rows are gathered
// in one pass and sorted only where they are not. Remembers which process each thread belongs to (8
// bytes a thread, nothing else grows). Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "model/heap/heap.h"
#include "model/ids.h"
#include "model/sample.h"

namespace assay::run {

inline TimeNs time_of(const model::Sample& row) {
  return row.time;
}
inline TimeNs time_of(const model::Wait& row) {
  return row.start;
}

inline TimeNs time_of(const model::HeapAlloc& row) {
  return row.time;
}
inline TimeNs time_of(const model::HeapFree& row) {
  return row.time;
}

class ThreadGrouper {
 public:
  void set_process(model::ThreadId thread, model::ProcessId process) {
    if (thread.value >= process_of_.size()) {
      process_of_.resize(thread.value + 1, kUnknown);
      slot_of_.resize(thread.value + 1, kUnknown);
    }
    process_of_[thread.value] = process.value;
  }
  bool knows(model::ThreadId thread) const {
    return thread.value < process_of_.size() && process_of_[thread.value] != kUnknown;
  }
  uint32_t process_of(model::ThreadId thread) const { return process_of_[thread.value]; }

  // Every row's thread must be known. `grouped` is replaced.
  template <class Row>
  void group(std::span<const Row> rows, std::vector<Row>& grouped) {
    threads_.clear();
    for (const Row& row : rows) {
      uint32_t thread = row.thread.value;
      if (slot_of_[thread] == kUnknown) {
        slot_of_[thread] = 0;
        threads_.push_back(thread);
      }
      ++slot_of_[thread];
    }
    std::sort(threads_.begin(), threads_.end(), [this](uint32_t a, uint32_t b) {
      return std::pair(process_of_[a], a) < std::pair(process_of_[b], b);
    });
    uint32_t begin = 0;
    for (uint32_t thread : threads_) {
      uint32_t count = slot_of_[thread];
      slot_of_[thread] = begin;
      begin += count;
    }
    grouped.resize(rows.size());
    for (const Row& row : rows) grouped[slot_of_[row.thread.value]++] = row;
    begin = 0;
    for (uint32_t thread : threads_) {
      sort_by_time(std::span(grouped).subspan(begin, slot_of_[thread] - begin));
      begin = slot_of_[thread];
      slot_of_[thread] = kUnknown;
    }
  }

 private:
  static constexpr uint32_t kUnknown = 0xffffffff;

  template <class Row>
  static void sort_by_time(std::span<Row> rows) {
    auto earlier = [](const Row& a, const Row& b) { return time_of(a) < time_of(b); };
    if (!std::is_sorted(rows.begin(), rows.end(), earlier)) {
      std::stable_sort(rows.begin(), rows.end(), earlier);
    }
  }

  std::vector<uint32_t> process_of_;  // by thread
  std::vector<uint32_t> slot_of_;     // by thread; kUnknown between calls
  std::vector<uint32_t> threads_;     // of the rows at hand
};

}  // namespace assay::run
