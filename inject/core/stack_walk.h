// Walks a thread's own stack (or a copy of another's) from inside the process: complete with or
// without frame pointers.
//
// Async-signal-safe: no allocation, no lock, no dl_iterate_phdr; every memory read stays inside the
// bounds of the stack. Code is walked by its module's .eh_frame, decoded at first use and kept in a
// cache of fixed size; code without one (JIT code) is walked by frame pointers. Any thread may
// walk. Modules may be loaded and unloaded; nothing has to be rebuilt. Failure: a walk that cannot
// continue ends there, with `complete` false. Needs glibc 2.35 (_dl_find_object).
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::inject {

struct WalkResult {
  uint32_t frames = 0;
  bool complete = false;  // ended at _start or the thread's start
};

// Prepares once what the first walk of a process would otherwise prepare. Cheap; not
// async-signal-safe, so call it before signals are used. False: this libc's threads cannot be read
// directly (walks are slower then).
bool prepare_stack_walk();

// The caller's own stack, without the `skip` innermost frames (0: the caller's caller comes first).
WalkResult walk_here(uintptr_t* pcs, size_t room, size_t skip);

// The caller's own stack, starting at the frame that returns to `return_address`: the stack of a
// hook's caller, independent of how the functions in between were compiled.
WalkResult walk_above(const void* return_address, uintptr_t* pcs, size_t room);

// The stack that a signal interrupted; `context` is the handler's ucontext_t. pcs[0] is where it
// was.
WalkResult walk_interrupted(const void* context, uintptr_t* pcs, size_t room);

// Another thread's stack, from a copy of it: `bytes` at `copy` are those from `sp` - kRedZoneBytes
// on, of a thread that is at `pc` with the stack pointer `sp`. No other register is known, so a
// walk ends at the first function that needs a register which no earlier frame had saved.
inline constexpr uintptr_t kRedZoneBytes = 128;
WalkResult walk_copy(uintptr_t pc, uintptr_t sp, const void* copy, size_t bytes, uintptr_t* pcs,
                     size_t room);

}  // namespace assay::inject
