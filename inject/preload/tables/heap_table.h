// The heap profile inside the process itself: for each call stack, what was allocated and what is
// still live.
//
// Filled by the sampler in the same library (which replaces malloc when it is preloaded or linked,
// or when attaching has set its hooks); read by libassay for /debug/pprof/heap, allocs and
// HEAPPROFILE files. Every sample is weighted by its own size and rate, then summed: estimates are
// unbiased for any mix of sizes. Threads: anything may be called from any thread, at any time,
// except from signal handlers; nothing locks, and no memory comes from the program's allocator. A
// visit sees each site's numbers at that moment. A forked child continues with its own copy.
// Failure: memory is bounded (kMaxSites stacks, kSiteBytes of them); what does not fit is summed in
// one site without frames, so that totals stay right.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::inject {

inline constexpr uint64_t kDefaultHeapRateBytes = 512 << 10;
inline constexpr size_t kMaxSites = 16384;
inline constexpr size_t kSiteBytes = 32 << 20;

struct HeapSite {
  const uintptr_t* pcs = nullptr;  // return addresses, innermost first; never freed
  uint32_t frames = 0;
  bool is_complete = false;
  uint32_t label = 0;  // from the label source, when the allocation was made
  // Estimates for the whole program.
  double alloc_objects = 0, alloc_bytes = 0;
  double live_objects = 0, live_bytes = 0;
  // What was sampled.
  uint64_t alloc_samples = 0, alloc_sampled_bytes = 0;
  uint64_t live_samples = 0, live_sampled_bytes = 0;
};

// Begins (or continues) to fill the table, one sample per `rate_bytes` on average. False: no
// memory.
bool start_heap_table(uint64_t rate_bytes = kDefaultHeapRateBytes);
// No new samples; frees are still followed, so the live amount stays right.
void stop_heap_table();
// 0: stopped. The rate in force may be higher for a while, see heap_sampler.h.
uint64_t heap_table_rate();

// Calls `visit` for every site that ever had a sample.
void visit_heap_sites(void (*visit)(const HeapSite& site, void* data), void* data);

// The totals over all sites (label and frames empty).
HeapSite heap_totals();

// Returns the current label of a thread; called on the allocating thread at every sample, so it
// must be fast and must not allocate. Null: none (label 0).
using LabelSource = uint32_t (*)();
void set_heap_label_source(LabelSource source);

}  // namespace assay::inject
