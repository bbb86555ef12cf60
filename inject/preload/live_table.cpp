#include "inject/preload/live_table.h"

#include "inject/core/pages.h"

namespace assay::inject {

constinit LiveTable live_table;

bool LiveTable::prepare() {
  if (keys_) return true;
  auto* entries = map_table<LiveEntry>(capacity(), "assay heap entries");
  auto* keys = map_table<std::atomic<uint64_t>>(capacity(), "assay heap addresses");
  if (entries && keys) {
    entries_at_ = entries;
    keys_ = keys;
    return true;
  }
  if (entries) unmap_pages(entries, capacity() * sizeof(LiveEntry));
  if (keys) unmap_pages(keys, capacity() * sizeof *keys);
  return false;
}

// A count that reached the top stays there: from then on it can no longer be trusted to come back
// to 0.
void LiveTable::count_in(const void* address) {
  auto& count = filter_[filter_index(address)];
  uint8_t now = count.load(std::memory_order_relaxed);
  while (now != UINT8_MAX &&
         !count.compare_exchange_weak(now, now + 1, std::memory_order_relaxed)) {
  }
  entries_.fetch_add(1, std::memory_order_relaxed);
}

void LiveTable::count_out(const void* address) {
  auto& count = filter_[filter_index(address)];
  uint8_t now = count.load(std::memory_order_relaxed);
  while (now != UINT8_MAX &&
         !count.compare_exchange_weak(now, now - 1, std::memory_order_relaxed)) {
  }
  entries_.fetch_sub(1, std::memory_order_relaxed);
}

bool LiveTable::insert(const void* address, const LiveEntry& entry) {
  size_t first = bucket(address);
  for (size_t i = first; i < first + kBucketSlots; ++i) {
    uint64_t empty = 0;
    if (keys_[i].load(std::memory_order_relaxed) != 0 ||
        !keys_[i].compare_exchange_strong(empty, kBusy, std::memory_order_acquire))
      continue;
    entries_at_[i] = entry;
    count_in(address);
    keys_[i].store(reinterpret_cast<uintptr_t>(address), std::memory_order_release);
    return true;
  }
  return false;
}

bool LiveTable::take(const void* address, LiveEntry& out) {
  if (!keys_) return false;
  size_t first = bucket(address);
  for (size_t i = first; i < first + kBucketSlots; ++i) {
    uint64_t key = reinterpret_cast<uintptr_t>(address);
    if (keys_[i].load(std::memory_order_relaxed) != key ||
        !keys_[i].compare_exchange_strong(key, kBusy, std::memory_order_acquire))
      continue;
    out = entries_at_[i];
    count_out(address);
    keys_[i].store(0, std::memory_order_release);
    return true;
  }
  return false;
}

}  // namespace assay::inject
