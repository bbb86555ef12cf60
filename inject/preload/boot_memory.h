// Memory for the first moments: while the real allocator is looked up, the lookup itself may
// allocate.
//
// A fixed piece of the library, handed out once and never taken back. Single-threaded by nature
// (the first allocation of a process).
#pragma once

#include <cstddef>

namespace assay::inject {

void* boot_allocate(size_t bytes, size_t alignment);  // zeroed; null when it is used up
bool is_boot_memory(const void* at);
size_t boot_bytes(const void* at);  // of the block at `at`

}  // namespace assay::inject
