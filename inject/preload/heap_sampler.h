// The sampler: decides which allocations are sampled, and tells the channel and the in-process
// table.
//
// In: what the hooks (hooks.cpp) could not settle on their fast path. Each thread counts down an
// exponentially distributed number of bytes, so an allocation of s bytes is sampled with
// probability 1 - e^(-s/rate). While nobody listens a thread comes here once per kIdleBytes to look
// again. Above kMaxSamplesPerCore a second the rate is raised in powers of two, and lowered again
// when the program calms down; every sample says the rate that it was drawn with, so the estimate
// stays unbiased. Threads: any; no locks; errno is kept. What the sampler allocates itself is not
// sampled.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/preload/heap_channel.h"

namespace assay::inject {

inline constexpr uint64_t kIdleBytes = 256 << 10;
inline constexpr uint32_t kMaxSamplesPerCore = 200;

// `at` was allocated, and count_bytes said to look at it. `caller`: where the allocation function
// returns to.
void look_at_allocation(void* at, size_t bytes, HeapFunction function, const void* caller);

// `at` is about to be freed and the filter says that it may be sampled.
void look_at_free(void* at);

// Takes a sampled block out, tells its end, and says what it was. False: it was none.
bool forget_sample(void* at, struct LiveEntry& out);

// Samples this very allocation, whatever is left to count: a realloc failed and left a sampled
// block where it was.
void sample_allocation(void* at, size_t bytes, HeapFunction function, const void* caller);

// Forgets every sampled address. In a forked child, or after detaching.
void forget_live_samples();

}  // namespace assay::inject
