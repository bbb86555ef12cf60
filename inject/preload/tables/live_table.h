// LiveTable: the sampled allocations that are not freed yet, by address, with a small filter in
// front.
//
// In: sampled allocations. Every free looks up its address; the filter decides almost every lookup
// with one load; the table has buckets of fixed width, so nothing ever moves. Lock-free throughout:
// a fork, a signal or a killed thread leaves at worst one slot unused. Any thread. An address must
// not be inserted twice at once (an allocator never returns a live address). Failure: a full bucket
// refuses the entry; the caller counts it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace assay::inject {

struct Site;

struct LiveEntry {
  uint64_t bytes = 0;
  uint64_t rate_bytes = 0;
  Site* site = nullptr;  // of the in-process table; null when only the channel listens
};

class LiveTable {
 public:
  static constexpr size_t kBuckets = 8192, kBucketSlots = 16;
  static constexpr size_t kFilterBits = 16;

  // Maps the memory; a second call does nothing. False: no memory.
  bool prepare();

  // May `address` be in the table? Cheap; false is certain.
  bool may_hold(const void* address) const {
    if (__builtin_expect(entries_.load(std::memory_order_relaxed) == 0, 1)) return false;
    return filter_[filter_index(address)].load(std::memory_order_relaxed) != 0;
  }

  bool insert(const void* address, const LiveEntry& entry);
  bool take(const void* address, LiveEntry& out);

  // Calls `each` with what was taken out.
  template <class Each>
  void take_all(Each each) {
    Slots* slots = slots_.load(std::memory_order_acquire);
    if (!slots || entries() == 0) return;
    for (size_t i = 0; i < kBuckets * kBucketSlots; ++i) {
      uint64_t key = slots->keys[i].load(std::memory_order_relaxed);
      LiveEntry entry;
      if (key > kBusy && take(reinterpret_cast<const void*>(key), entry)) each(key, entry);
    }
  }

  size_t entries() const { return entries_.load(std::memory_order_relaxed); }
  static constexpr size_t capacity() { return kBuckets * kBucketSlots; }

 private:
  static constexpr uint64_t kBusy = 1;  // being written or read by a thread
  static uint64_t mixed(const void* address) {
    return reinterpret_cast<uintptr_t>(address) * 0x9e3779b97f4a7c15;
  }
  static size_t filter_index(const void* address) { return mixed(address) >> (64 - kFilterBits); }
  static size_t bucket(const void* address) {
    return (mixed(address) >> 20) % kBuckets * kBucketSlots;
  }
  struct Slots {
    std::atomic<uint64_t> keys[kBuckets * kBucketSlots];  // addresses; 0: empty
    LiveEntry entries[kBuckets * kBucketSlots];
  };
  void count_in(const void* address);
  void count_out(const void* address);

  std::atomic<size_t> entries_{0};
  std::atomic<uint8_t> filter_[size_t{1} << kFilterBits] = {};
  std::atomic<Slots*> slots_{nullptr};
};

extern LiveTable live_table;

}  // namespace assay::inject
