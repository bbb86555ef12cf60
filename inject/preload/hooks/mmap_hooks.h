// Anonymous memory that a program maps for itself, sampled like allocations when Assay asks for it.
//
// The exported mmap, mmap64 and munmap are the system call and nothing else until then; an attached
// program's slots are hooked only then. What the allocator itself maps inside libc is not seen, and
// not counted twice.
#pragma once

#include "inject/preload/hooks/hooks.h"

namespace assay::inject {

// On from now on, for good: `wanted` is what the channel says when it is opened.
void set_mmap_sampling(bool wanted);
bool is_sampling_mmap();
HookList mmap_hooks();

}  // namespace assay::inject
