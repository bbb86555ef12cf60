// Reads the stack of a sleeping thread without interrupting it: for threads that block the signal,
// or that a signal would disturb.
//
// The kernel says where a sleeping thread left user space (/proc/self/task/TID/syscall); its stack
// is copied by process_vm_readv, which fails where memory is unmapped, and the copy is used only if
// the thread still sleeps there afterwards. Not async-signal-safe. Failures: false for a thread
// that runs or has ended; one frame where copying is not permitted; a part of the stack where a
// walk needs a register that was not saved.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/inproc/lifecycle/arena.h"

namespace assay::inproc {

struct SleepingThread {
  int tid = 0;
  long call = -1;  // the system call it is in; -1: none (a page fault)
  uint64_t first_argument = 0;
  uintptr_t pc = 0, sp = 0;

  // A call that ends at any signal, even with SA_RESTART, and whose end programs treat as an event:
  // for example a main thread in pause() until it shall exit, or a sleep.
  bool is_ended_by_signals() const;
};

bool find_sleeping_thread(int tid, SleepingThread& out);

// Innermost first, in `arena`; the number of frames. 0: it no longer sleeps there, or there is no
// memory.
uint32_t walk_sleeping_thread(const SleepingThread& thread, Arena& arena, const uintptr_t*& pcs);

}  // namespace assay::inproc
