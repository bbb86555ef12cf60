#include "inject/inproc/cpu/sample_table.h"

#include <cstring>

#include <sys/mman.h>

#include "inject/inproc/lifecycle/arena.h"

namespace assay::inproc {
namespace {

constexpr uint32_t kMaxProbes = 128;

uint64_t hash_of(const uintptr_t* pcs, uint32_t frames, uint32_t label, uint32_t kind) {
  uint64_t hash = 0x9e3779b97f4a7c15 ^ (uint64_t{label} << 32 | kind << 16 | frames);
  for (uint32_t i = 0; i < frames; ++i) {
    hash = (hash ^ pcs[i]) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash | 1;
}

}  // namespace

bool SampleTable::open(uint32_t rows_log2, uint32_t frame_words) {
  uint32_t rows = 1U << rows_log2;
  auto* slots = static_cast<Slot*>(map_pages(rows * sizeof(Slot)));
  auto* frames = static_cast<uintptr_t*>(map_pages(frame_words * sizeof(uintptr_t)));
  if (slots == nullptr || frames == nullptr) {
    unmap_pages(slots, rows * sizeof(Slot));
    unmap_pages(frames, frame_words * sizeof(uintptr_t));
    return false;
  }
  frames_ = frames;
  mask_ = rows - 1;
  frame_words_ = frame_words;
  slots_ = slots;
  return true;
}

bool SampleTable::same(const Slot& slot, const uintptr_t* pcs, uint32_t frames, uint32_t label,
                       uint32_t kind) const {
  return slot.frames == frames && slot.label == label && slot.kind == kind &&
         std::memcmp(frames_ + slot.first_frame, pcs, frames * sizeof(uintptr_t)) == 0;
}

bool SampleTable::fill(Slot& slot, const uintptr_t* pcs, uint32_t frames, uint32_t label,
                       uint32_t kind) {
  uint64_t first = used_frames_.fetch_add(frames, std::memory_order_relaxed);
  if (first + frames > frame_words_) return false;
  std::memcpy(frames_ + first, pcs, frames * sizeof(uintptr_t));
  slot.label = label;
  slot.kind = kind;
  slot.frames = frames;
  slot.first_frame = first;
  slot.state.store(kReady, std::memory_order_release);
  return true;
}

uint32_t SampleTable::add(const uintptr_t* pcs, uint32_t frames, uint32_t label, uint32_t kind,
                          int64_t count, int64_t value) {
  uint64_t hash = hash_of(pcs, frames, label, kind);
  uint32_t index = static_cast<uint32_t>(hash >> 20) & mask_;
  for (uint32_t probe = 0; probe < kMaxProbes; ++probe, index = (index + 1) & mask_) {
    Slot& slot = slots_[index];
    uint64_t seen = slot.hash.load(std::memory_order_acquire);
    bool mine = seen == 0 && slot.hash.compare_exchange_strong(seen, hash);
    if (mine && !fill(slot, pcs, frames, label, kind)) break;
    // A row that another thread is still filling is skipped, not waited for: that thread may be the
    // one this handler interrupted.
    bool found = mine || (seen == hash && slot.state.load(std::memory_order_acquire) == kReady &&
                          same(slot, pcs, frames, label, kind));
    if (!found) continue;
    slot.count.fetch_add(count, std::memory_order_relaxed);
    slot.value.fetch_add(value, std::memory_order_relaxed);
    return index;
  }
  dropped_.fetch_add(1, std::memory_order_relaxed);
  return kNoRow;
}

bool SampleTable::row(uint32_t index, SampleRow& out) const {
  const Slot& slot = slots_[index];
  if (slot.state.load(std::memory_order_acquire) != kReady) return false;
  out.label = slot.label;
  out.kind = slot.kind;
  out.frames = slot.frames;
  out.pcs = frames_ + slot.first_frame;
  out.count = slot.count.load(std::memory_order_relaxed);
  out.value = slot.value.load(std::memory_order_relaxed);
  return out.count != 0 || out.value != 0;
}

void SampleTable::clear() {
  uint64_t frames = used_frames_.exchange(0);
  if (frames > frame_words_) frames = frame_words_;
  // Gives the pages back and zeroes them in one call.
  madvise(slots_, (size_t{mask_} + 1) * sizeof(Slot), MADV_DONTNEED);
  if (frames > 0) madvise(frames_, frame_words_ * sizeof(uintptr_t), MADV_DONTNEED);
  dropped_ = 0;
}

}  // namespace assay::inproc
