// The heap sampler behind /debug/pprof/heap: the one of inject/preload, which is part of
// libassay.so. libassay.a does not replace malloc and has no sampler: there everything here is
// false or zero.
#pragma once

#include "assay/assay.h"
#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/write/profile.h"

namespace assay::inproc {

struct HeapTotals {
  double allocated_bytes = 0, live_bytes = 0;
};

// One sample per ASSAY_HEAP_RATE bytes (512 KiB). A second call continues. False: no sampler, or no
// memory.
bool start_heap_sampling();
bool heap_is_sampled();
HeapTotals heap_totals_now();
bool collect_heap(Arena& arena, Profile& profile);
// False with a sentence in last_error.
bool write_heap_profile(assay_format format, ByteBuffer& out);

}  // namespace assay::inproc
