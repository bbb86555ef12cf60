// The part of the heap table that the sampler writes: sites by stack and label. Lock-free; see
// heap_table.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "inject/preload/tables/live_table.h"

namespace assay::inject {

// 0: the table is off.
uint64_t site_table_rate();
uint32_t current_label_id();

// The site of a stack, found or made. Never null once the table was started.
Site* find_site(const uintptr_t* pcs, uint32_t frames, bool is_complete, uint32_t label);
void add_allocation(const LiveEntry& entry);
void add_free(const LiveEntry& entry);

}  // namespace assay::inject
