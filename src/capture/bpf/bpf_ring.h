// BpfRing: reads whole records out of one BPF ring buffer, in order, giving the space back.
//
// In: the map's fd. Out: each record as contiguous bytes (the kernel maps the data twice in a row).
// Threads: one reader; the kernel writes. Failures: an Error when it cannot be mapped; a record
// whose length cannot be right empties the ring and is counted by the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/result.h"

namespace assay::capture {

class BpfRing {
 public:
  static Result<std::unique_ptr<BpfRing>> map(int fd, size_t data_bytes);
  ~BpfRing();
  BpfRing(const BpfRing&) = delete;
  BpfRing& operator=(const BpfRing&) = delete;

  // Visits what has been committed up to now; false when the ring was corrupt.
  bool drain(const std::function<void(std::span<const std::byte>)>& visit);

 private:
  BpfRing(size_t data_bytes, size_t page) : data_bytes_(data_bytes), page_(page) {}

  size_t data_bytes_, page_;
  std::byte* consumer_ = nullptr;  // one page: how far we have read
  std::byte* producer_ = nullptr;  // one page: how far the kernel has written; then the data, twice
};

}  // namespace assay::capture
