// Where the program's operator new functions are: a stack should begin at their caller.
//
// They are not replaced (a program may pair its own new and delete in ways that only it knows):
// they call malloc, and the sampler sees them as the innermost frame.
#pragma once

#include <cstdint>

namespace assay::inject {

// Looks them up in the loaded objects. Not async-signal-safe; allocates nothing.
void find_operator_new();

// How many innermost frames of `pcs` are operator new. Async-signal-safe.
uint32_t operator_new_frames(const uintptr_t* pcs, uint32_t frames);

}  // namespace assay::inject
