#include "inject/preload/tables/heap_table.h"

#include <atomic>
#include <cstring>

#include "inject/core/pages.h"
#include "inject/preload/exponential.h"
#include "inject/preload/tables/live_table.h"
#include "inject/preload/tables/site_table.h"

namespace assay::inject {

// Sums only grow; the live amount is their difference, so no order of updates can make it wrong
// permanently.
struct Sums {
  std::atomic<double> objects, bytes;
  std::atomic<uint64_t> samples, sampled_bytes;

  void add(const LiveEntry& entry) {
    double weight = sample_weight(entry.bytes, entry.rate_bytes);
    objects.fetch_add(weight, std::memory_order_relaxed);
    bytes.fetch_add(weight * static_cast<double>(entry.bytes), std::memory_order_relaxed);
    samples.fetch_add(1, std::memory_order_relaxed);
    sampled_bytes.fetch_add(entry.bytes, std::memory_order_relaxed);
  }
};

struct Site {
  uint64_t hash;
  uint32_t frames, label;
  bool is_complete;
  Sums allocated, freed;

  uintptr_t* pcs() { return reinterpret_cast<uintptr_t*>(this + 1); }
};

namespace {

constexpr size_t kSlots = kMaxSites * 2;  // open addressing, at most half full

std::atomic<uint64_t> rate{0};
std::atomic<LabelSource> label_source{nullptr};
std::atomic<std::atomic<Site*>*> slots{nullptr};
std::atomic<char*> arena{nullptr};
std::atomic<size_t> arena_used{0}, sites{0};
Site overflow;  // stacks that did not fit

uint64_t hash_of(const uintptr_t* pcs, uint32_t frames, uint32_t label) {
  uint64_t hash = label + 0x9e3779b97f4a7c15;
  for (uint32_t i = 0; i < frames; ++i)
    hash = (hash ^ pcs[i]) * 0xff51afd7ed558ccd, hash ^= hash >> 32;
  return hash;
}

Site* make_site(const uintptr_t* pcs, uint32_t frames, bool is_complete, uint32_t label,
                uint64_t hash) {
  size_t bytes = sizeof(Site) + frames * sizeof *pcs;
  size_t at = arena_used.fetch_add(bytes, std::memory_order_relaxed);
  if (at + bytes > kSiteBytes) return nullptr;
  Site* site = reinterpret_cast<Site*>(arena.load(std::memory_order_acquire) + at);
  site->hash = hash;
  site->frames = frames;
  site->label = label;
  site->is_complete = is_complete;
  std::memcpy(site->pcs(), pcs, frames * sizeof *pcs);
  return site;
}

bool is_site(Site* site, const uintptr_t* pcs, uint32_t frames, uint32_t label, uint64_t hash) {
  return site->hash == hash && site->frames == frames && site->label == label &&
         std::memcmp(site->pcs(), pcs, frames * sizeof *pcs) == 0;
}

HeapSite describe(Site& site) {
  HeapSite out;
  out.pcs = site.pcs();
  out.frames = site.frames;
  out.is_complete = site.is_complete;
  out.label = site.label;
  // Frees first: an allocation counted meanwhile can only make the live amount larger, never
  // negative.
  double freed_objects = site.freed.objects, freed_bytes = site.freed.bytes;
  uint64_t freed_samples = site.freed.samples, freed_sampled = site.freed.sampled_bytes;
  std::atomic_thread_fence(std::memory_order_acquire);
  out.alloc_objects = site.allocated.objects;
  out.alloc_bytes = site.allocated.bytes;
  out.alloc_samples = site.allocated.samples;
  out.alloc_sampled_bytes = site.allocated.sampled_bytes;
  out.live_samples = out.alloc_samples - freed_samples;
  out.live_sampled_bytes = out.alloc_sampled_bytes - freed_sampled;
  if (out.live_samples > 0) {
    out.live_objects = out.alloc_objects - freed_objects;
    out.live_bytes = out.alloc_bytes - freed_bytes;
  }
  return out;
}

}  // namespace

bool start_heap_table(uint64_t rate_bytes) {
  if (!slots.load(std::memory_order_acquire)) {
    if (!live_table.prepare()) return false;
    char* memory = map_table<char>(kSiteBytes, "assay heap sites");
    auto* made = map_table<std::atomic<Site*>>(kSlots, "assay heap site index");
    if (!memory || !made) {
      if (memory) unmap_pages(memory, kSiteBytes);
      if (made) unmap_pages(made, kSlots * sizeof *made);
      return false;
    }
    char* none = nullptr;
    if (arena.compare_exchange_strong(none, memory)) {
      slots.store(made, std::memory_order_release);
    } else {  // another thread was faster
      unmap_pages(memory, kSiteBytes);
      unmap_pages(made, kSlots * sizeof *made);
    }
  }
  rate.store(rate_bytes ? rate_bytes : kDefaultHeapRateBytes, std::memory_order_release);
  return true;
}

void stop_heap_table() {
  rate.store(0, std::memory_order_release);
}
uint64_t heap_table_rate() {
  return rate.load(std::memory_order_relaxed);
}
uint64_t site_table_rate() {
  return rate.load(std::memory_order_acquire);
}

void set_heap_label_source(LabelSource source) {
  label_source.store(source, std::memory_order_release);
}
uint32_t current_label_id() {
  LabelSource source = label_source.load(std::memory_order_acquire);
  return source ? source() : 0;
}

Site* find_site(const uintptr_t* pcs, uint32_t frames, bool is_complete, uint32_t label) {
  uint64_t hash = hash_of(pcs, frames, label);
  auto* table = slots.load(std::memory_order_acquire);
  if (!table) return &overflow;
  Site* made = nullptr;
  for (size_t probe = 0; probe < kSlots; ++probe) {
    auto& slot = table[(hash + probe) % kSlots];
    Site* there = slot.load(std::memory_order_acquire);
    if (!there) {
      if (sites.load(std::memory_order_relaxed) >= kMaxSites) return &overflow;
      if (!made) made = make_site(pcs, frames, is_complete, label, hash);
      if (!made) return &overflow;
      if (slot.compare_exchange_strong(there, made, std::memory_order_acq_rel)) {
        sites.fetch_add(1, std::memory_order_relaxed);
        return made;
      }
    }
    if (is_site(there, pcs, frames, label, hash)) return there;
  }
  return &overflow;
}

void add_allocation(const LiveEntry& entry) {
  entry.site->allocated.add(entry);
}
void add_free(const LiveEntry& entry) {
  entry.site->freed.add(entry);
}

void visit_heap_sites(void (*visit)(const HeapSite&, void*), void* data) {
  auto* table = slots.load(std::memory_order_acquire);
  if (!table) return;
  for (size_t i = 0; i < kSlots; ++i) {
    if (Site* site = table[i].load(std::memory_order_acquire)) visit(describe(*site), data);
  }
  HeapSite rest = describe(overflow);
  if (rest.alloc_samples) visit(rest, data);
}

HeapSite heap_totals() {
  HeapSite total;
  visit_heap_sites(
      [](const HeapSite& site, void* data) {
        HeapSite& sum = *static_cast<HeapSite*>(data);
        sum.alloc_objects += site.alloc_objects;
        sum.alloc_bytes += site.alloc_bytes;
        sum.live_objects += site.live_objects;
        sum.live_bytes += site.live_bytes;
        sum.alloc_samples += site.alloc_samples;
        sum.alloc_sampled_bytes += site.alloc_sampled_bytes;
        sum.live_samples += site.live_samples;
        sum.live_sampled_bytes += site.live_sampled_bytes;
      },
      &total);
  return total;
}

}  // namespace assay::inject
