// Anonymous memory that a program maps for itself, sampled like allocations when Assay asks for it.
//
// Until then the exported mmap, mmap64 and munmap only make the system call, and an attached
// program's slots are not hooked. Mappings that the allocator makes inside libc are not seen, and
// so not counted twice.
#pragma once

#include "inject/preload/hooks/hooks.h"

namespace assay::inject {

// Switches it on permanently if `wanted`, which is the channel's flag when it is opened.
void set_mmap_sampling(bool wanted);
bool is_sampling_mmap();
HookList mmap_hooks();

}  // namespace assay::inject
