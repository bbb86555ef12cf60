// The heap inside the process itself: per call stack, what was allocated and what still lives.
//
// Fed by the sampler in the same library (which stands in for malloc when it is preloaded, linked,
// or its hooks are set by attaching); read by libassay for /debug/pprof/heap, allocs and
// HEAPPROFILE files. Every sample is weighted by its own size and rate, then summed: estimates are
// unbiased for any mix of sizes. Threads: anything may be called from any thread, at any time, but
// for signal handlers; nothing locks and nothing comes from the program's allocator. A visit sees
// each site's numbers as they stand at that moment. A forked child goes on with a copy of its own.
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
  const uintptr_t* pcs = nullptr;  // return addresses, innermost first; valid for good
  uint32_t frames = 0;
  bool is_complete = false;
  uint32_t label = 0;  // what the label source said when the allocation was made
  // Estimates for the whole program.
  double alloc_objects = 0, alloc_bytes = 0;
  double live_objects = 0, live_bytes = 0;
  // What was sampled.
  uint64_t alloc_samples = 0, alloc_sampled_bytes = 0;
  uint64_t live_samples = 0, live_sampled_bytes = 0;
};

// Begins (or goes on) to fill the table, one sample per `rate_bytes` on average. False: no memory.
bool start_heap_table(uint64_t rate_bytes = kDefaultHeapRateBytes);
// No new samples; frees are still followed, so what lives stays right.
void stop_heap_table();
// 0: stopped. The rate in force may be higher for a while, see heap_sampler.h.
uint64_t heap_table_rate();

// Calls `visit` for every site that ever had a sample.
void visit_heap_sites(void (*visit)(const HeapSite& site, void* data), void* data);

// The totals over all sites (label and frames empty).
HeapSite heap_totals();

// Who says which label a thread is under; called on the allocating thread at every sample, so it
// must be quick and must not allocate. Null: none (label 0).
using LabelSource = uint32_t (*)();
void set_heap_label_source(LabelSource source);

}  // namespace assay::inject
