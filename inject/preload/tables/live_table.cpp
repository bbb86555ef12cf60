#include "inject/preload/tables/live_table.h"

#include "inject/core/pages.h"

namespace assay::inject {

constinit LiveTable live_table;

bool LiveTable::prepare() {
  if (slots_.load(std::memory_order_acquire)) return true;
  auto* made = static_cast<Slots*>(map_pages(sizeof(Slots), "assay heap samples"));
  if (!made) return false;
  Slots* none = nullptr;  // another thread may do the same
  if (!slots_.compare_exchange_strong(none, made, std::memory_order_acq_rel))
    unmap_pages(made, sizeof(Slots));
  return true;
}

// A count that reached its maximum stays there, because it could otherwise reach 0 too early.
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
  Slots* slots = slots_.load(std::memory_order_acquire);
  if (!slots) return false;
  size_t first = bucket(address);
  for (size_t i = first; i < first + kBucketSlots; ++i) {
    uint64_t empty = 0;
    if (slots->keys[i].load(std::memory_order_relaxed) != 0 ||
        !slots->keys[i].compare_exchange_strong(empty, kBusy, std::memory_order_acquire))
      continue;
    slots->entries[i] = entry;
    count_in(address);
    slots->keys[i].store(reinterpret_cast<uintptr_t>(address), std::memory_order_release);
    return true;
  }
  return false;
}

bool LiveTable::take(const void* address, LiveEntry& out) {
  if (address == nullptr) return false;  // 0 marks an empty slot
  Slots* slots = slots_.load(std::memory_order_acquire);
  if (!slots) return false;
  size_t first = bucket(address);
  for (size_t i = first; i < first + kBucketSlots; ++i) {
    uint64_t key = reinterpret_cast<uintptr_t>(address);
    if (slots->keys[i].load(std::memory_order_relaxed) != key ||
        !slots->keys[i].compare_exchange_strong(key, kBusy, std::memory_order_acquire))
      continue;
    out = slots->entries[i];
    count_out(address);
    slots->keys[i].store(0, std::memory_order_release);
    return true;
  }
  return false;
}

}  // namespace assay::inject
