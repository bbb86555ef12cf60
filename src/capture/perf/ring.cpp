#include "capture/perf/ring.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace assay::capture {

bool Ring::drain(const std::function<void(std::span<const std::byte>)>& visit) {
  perf_event_mmap_page* control = memory_->control();
  uint64_t capacity = memory_->data().size();
  // Acquire: the records before head are readable. Release below: we are done with those before
  // tail.
  uint64_t head = std::atomic_ref(control->data_head).load(std::memory_order_acquire);
  uint64_t tail = control->data_tail;
  fill_ = static_cast<double>(head - tail) / static_cast<double>(capacity);
  bool sane = head - tail <= capacity;
  while (sane && tail < head) {
    perf_event_header header;
    auto start = record_at(tail, sizeof header);
    std::memcpy(&header, start.data(), sizeof header);
    sane = header.size >= sizeof header && header.size % 8 == 0 && header.size <= head - tail;
    if (!sane) break;
    visit(record_at(tail, header.size));
    tail += header.size;
  }
  std::atomic_ref(control->data_tail).store(head, std::memory_order_release);
  return sane;
}

size_t Ring::pending_bytes() {
  perf_event_mmap_page* control = memory_->control();
  uint64_t head = std::atomic_ref(control->data_head).load(std::memory_order_acquire);
  return std::min<uint64_t>(head - control->data_tail, memory_->data().size());
}

std::span<const std::byte> Ring::record_at(uint64_t position, size_t size) {
  auto data = memory_->data();
  size_t offset = position & (data.size() - 1);
  if (offset + size <= data.size()) return data.subspan(offset, size);
  scratch_.resize(size);
  size_t first = data.size() - offset;
  std::memcpy(scratch_.data(), data.data() + offset, first);
  std::memcpy(scratch_.data() + first, data.data(), size - first);
  return scratch_;
}

}  // namespace assay::capture
