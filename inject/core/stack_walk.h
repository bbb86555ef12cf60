// Walks a thread's own stack from inside the process: complete with or without frame pointers.
//
// Async-signal-safe once `prepare_stack_walk` has run: no allocation, no lock, no dl_iterate_phdr; every
// load is bounded by the thread's stack. Modules are walked by tables made from their .eh_frame, outside
// of signals; code that has none is walked by frame pointers. Any thread may walk; tables are replaced by
// publication (old ones are kept, so a walk under way never sees one go).
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::inject {

struct WalkResult {
  uint32_t frames = 0;
  bool complete = false;  // ended at _start or the thread's start
};

// Builds the tables for what is loaded now; again after dlopen. Not async-signal-safe. False: no memory.
bool prepare_stack_walk();

// The caller's own stack, without the `skip` innermost frames (0: the caller's caller comes first).
WalkResult walk_here(uintptr_t* pcs, size_t room, size_t skip);

// The stack that a signal interrupted; `context` is the handler's ucontext_t.
WalkResult walk_interrupted(const void* context, uintptr_t* pcs, size_t room);

}  // namespace assay::inject
