// The stack that an address lies in, found without allocating.
//
// The main thread's by __libc_stack_end and the limit; another thread's from its descriptor, at a
// place that learn_thread_layout finds once by comparing with pthread_getattr_np (which allocates);
// a signal's by asking the kernel; anything else (a coroutine's, an unknown libc's) by reading
// /proc/self/maps, a bounded number of times a second. Async-signal-safe but for
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

// Call on any thread but the main one, outside of signals and locks; does nothing after the first
// success. False: not learnt (yet).
bool learn_thread_layout();

}  // namespace assay::inject
