// A heap sampler's half of the channel, over plain memory, for tests and fuzzing. Test support
// only.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "inject/preload/heap_channel.h"

namespace assay::capture::fake {

class HeapWriter {
 public:
  static constexpr uint64_t kRingBytes = 64 << 10;

  HeapWriter() : words_((inject::kHeapChannelHeaderBytes + kRingBytes) / 8) {
    header().magic = inject::kHeapChannelMagic;
    header().version = inject::kHeapChannelVersion;
    header().ring_bytes = kRingBytes;
  }

  std::span<std::byte> memory() { return std::as_writable_bytes(std::span(words_)); }
  inject::HeapChannelHeader& header() {
    return *reinterpret_cast<inject::HeapChannelHeader*>(words_.data());
  }
  std::byte* ring() { return memory().data() + inject::kHeapChannelHeaderBytes; }

  // False: the ring is full.
  bool alloc(uint64_t time, uint64_t address, uint64_t size, const std::vector<uint64_t>& pcs,
             uint64_t rate = 1 << 19, uint16_t function = 0) {
    inject::HeapAllocRecord record{};
    record.header.kind = inject::HeapRecordKind::alloc;
    record.header.frames = static_cast<uint16_t>(pcs.size());
    record.time_ns = time;
    record.address = address;
    record.size = size;
    record.rate_bytes = rate;
    record.tid = 7;
    record.function = function;
    record.complete = 1;
    return put(&record, sizeof record, pcs.data(), pcs.size() * 8);
  }
  bool free(uint64_t time, uint64_t address) {
    inject::HeapFreeRecord record{};
    record.header.kind = inject::HeapRecordKind::free;
    record.time_ns = time;
    record.address = address;
    record.tid = 7;
    return put(&record, sizeof record, nullptr, 0);
  }

 private:
  bool put(const void* record, uint64_t size, const void* more, uint64_t more_size) {
    uint64_t whole = size + more_size, head = header().head.load();
    uint64_t at = head % kRingBytes, padding = at + whole > kRingBytes ? kRingBytes - at : 0;
    if (head + padding + whole - header().tail.load() > kRingBytes) {
      header().dropped_records.fetch_add(1);
      return false;
    }
    if (padding > 0) {
      auto* pad = reinterpret_cast<inject::HeapRecordHeader*>(ring() + at);
      pad->kind = inject::HeapRecordKind::padding;
      pad->size.store(static_cast<uint32_t>(padding));
      at = 0;
    }
    std::memcpy(ring() + at, record, size);
    if (more_size > 0) std::memcpy(ring() + at + size, more, more_size);
    reinterpret_cast<inject::HeapRecordHeader*>(ring() + at)
        ->size.store(static_cast<uint32_t>(whole));
    header().head.store(head + padding + whole);
    return true;
  }

  std::vector<uint64_t> words_;
};

}  // namespace assay::capture::fake
