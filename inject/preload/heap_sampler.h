// The sampler: decides which allocations are sampled, and reports them to the channel and the
// in-process table.
//
// In: the allocations and frees that the hooks (hooks.cpp) cannot finish on their fast path. Each
// thread counts down an exponentially distributed number of bytes, so an allocation of s bytes is
// sampled with probability 1 - e^(-s/rate). While sampling is off, a thread comes here once per
// kIdleBytes to check again. Above kMaxSamplesPerCore a second the rate is raised in powers of two,
// and lowered again when the program allocates less; every sample carries the rate with which it
// was drawn, so the estimate stays unbiased. Threads: any; no locks; errno is preserved. The
// sampler's own allocations are not sampled.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/preload/heap_channel.h"

namespace assay::inject {

inline constexpr uint64_t kIdleBytes = 256 << 10;
inline constexpr uint32_t kMaxSamplesPerCore = 200;

// `at` was allocated, and count_bytes returned true for it. `caller`: the return address of the
// allocation function.
void look_at_allocation(void* at, size_t bytes, HeapFunction function, const void* caller);

// `at` is about to be freed and the filter says that it may be sampled.
void look_at_free(void* at);

// Removes a sampled block, reports its free, and returns its entry. False: it was not sampled.
bool forget_sample(void* at, struct LiveEntry& out);

// Samples this allocation regardless of the bytes left to count: a realloc failed and the sampled
// block still exists.
void sample_allocation(void* at, size_t bytes, HeapFunction function, const void* caller);

// Drops every sampled address. In a forked child, or after detaching.
void forget_live_samples();

}  // namespace assay::inject
