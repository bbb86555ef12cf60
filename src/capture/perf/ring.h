// Ring: reads whole records out of one kernel ring, in order, and frees their space.
//
// In: the memory of os::RingMemory. Out: each record as contiguous bytes (a record that wraps
// around the end is put together in a scratch buffer). Threads: one reader per ring; the kernel is
// the writer. Failures: a header that cannot be right (size 0 or beyond what was written) empties
// the ring and is reported as corrupt, since the next boundary cannot be known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "os/events/perf_event.h"

namespace assay::capture {

class Ring {
 public:
  explicit Ring(std::unique_ptr<os::RingMemory> memory) : memory_(std::move(memory)) {}

  // Visits what has been written up to now; false when the ring was corrupt.
  bool drain(const std::function<void(std::span<const std::byte>)>& visit);

  // Bytes that a drain would visit now.
  size_t pending_bytes();
  size_t capacity() { return memory_->data().size(); }
  // Share of the ring that was filled when the last drain began.
  double fill() const { return fill_; }

 private:
  std::span<const std::byte> record_at(uint64_t position, size_t size);

  std::unique_ptr<os::RingMemory> memory_;
  std::vector<std::byte> scratch_;
  double fill_ = 0;
};

}  // namespace assay::capture
