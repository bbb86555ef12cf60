// The stacks of all threads at about one moment: a signal makes each thread walk its own stack.
//
// Threads that block the signal, sleep in a call that a signal would end, or do not answer in time
// (stopped, deep in the kernel) are read from outside if they sleep (sleeping_thread.h), and are
// otherwise listed with one frame that says why (pseudo_frame.h). A thread that sleeps in another
// system call is interrupted by the signal: calls that the kernel does not restart (epoll_wait,
// poll) return EINTR to the host. One collection at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/inproc/lifecycle/arena.h"

namespace assay::inproc {

struct ThreadStack {
  int tid = 0;
  char name[16] = "";
  char state = '?';  // as /proc has it: R, S, D …
  uint32_t label = 0;
  uint32_t frames = 0;
  const uintptr_t* pcs = nullptr;
  const char* unasked = nullptr;  // why it did not walk itself
};

// All threads except libassay's own, in `arena`; their number. False: no memory or no signal.
bool collect_thread_stacks(Arena& arena, ThreadStack*& stacks, size_t& count);
void forget_thread_stacks();  // in a forked child

}  // namespace assay::inproc
