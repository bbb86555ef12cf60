// The stack that an address lies in, found without allocating.
//
// The main thread's stack comes from __libc_stack_end and the limit; another thread's from its
// descriptor, at an offset that learn_thread_layout finds once by comparing with pthread_getattr_np
// (which allocates); a signal stack from the kernel; any other (a coroutine's, or with an unknown
// libc) from /proc/self/maps, a bounded number of times a second. Async-signal-safe except
// learn_thread_layout. Any thread.
#pragma once

#include <cstdint>

namespace assay::inject {

struct StackBounds {
  uintptr_t low = 0, high = 0;  // high 0: not known
  bool is_own = false;          // the thread's own: it lasts as long as the thread
  bool holds(uintptr_t at) const { return at >= low && at < high; }
};

// The bounds above `sp` are readable memory.
StackBounds find_stack(uintptr_t sp);

// Call on any thread except the main one, outside of signal handlers and locks; does nothing after
// the first success. False: not known (yet).
bool learn_thread_layout();

}  // namespace assay::inject
