#include "capture/bpf/bpf_ring.h"

#include <atomic>

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

namespace assay::capture {

Result<std::unique_ptr<BpfRing>> BpfRing::map(int fd, size_t data_bytes) {
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::unique_ptr<BpfRing> ring(new BpfRing(data_bytes, page));
  void* consumer = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (consumer == MAP_FAILED) return fail_errno("cannot map a BPF ring buffer");
  ring->consumer_ = static_cast<std::byte*>(consumer);
  void* producer =
      mmap(nullptr, page + 2 * data_bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(page));
  if (producer == MAP_FAILED) return fail_errno("cannot map a BPF ring buffer");
  ring->producer_ = static_cast<std::byte*>(producer);
  return ring;
}

BpfRing::~BpfRing() {
  if (consumer_ != nullptr) munmap(consumer_, page_);
  if (producer_ != nullptr) munmap(producer_, page_ + 2 * data_bytes_);
}

bool BpfRing::drain(const std::function<void(std::span<const std::byte>)>& visit) {
  std::atomic_ref<uint64_t> read(*reinterpret_cast<uint64_t*>(consumer_));
  uint64_t at = read.load(std::memory_order_relaxed);
  // Acquire: the lengths before `end` are readable. Release below: we are done with those before.
  uint64_t end =
      std::atomic_ref(*reinterpret_cast<uint64_t*>(producer_)).load(std::memory_order_acquire);
  const std::byte* data = producer_ + page_;
  bool sane = end - at <= data_bytes_;
  while (sane && at < end) {
    std::byte* start = const_cast<std::byte*>(data + (at & (data_bytes_ - 1)));
    uint32_t length =
        std::atomic_ref(*reinterpret_cast<uint32_t*>(start)).load(std::memory_order_acquire);
    if (length & BPF_RINGBUF_BUSY_BIT) break;  // still being written
    uint32_t bytes = length & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
    uint64_t whole = (uint64_t{bytes} + BPF_RINGBUF_HDR_SZ + 7) & ~uint64_t{7};
    sane = whole <= end - at;
    if (!sane) break;
    if ((length & BPF_RINGBUF_DISCARD_BIT) == 0) visit({start + BPF_RINGBUF_HDR_SZ, bytes});
    at += whole;
  }
  read.store(sane ? at : end, std::memory_order_release);
  return sane;
}

}  // namespace assay::capture
