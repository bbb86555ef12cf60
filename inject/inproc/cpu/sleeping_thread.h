// The stack of a thread that sleeps, read without its help: for threads that block the signal, or
// that a signal would disturb.
//
// The kernel says where a sleeping thread left user space (/proc/self/task/TID/syscall); its stack
// is copied by a call that fails where memory is gone (process_vm_readv), and taken only if the
// thread still sleeps there afterwards. Not async-signal-safe. Failures: false for a thread that
// runs or is gone; one frame where a copy is not allowed; a part of the stack where a walk needs a
// register that nobody saved.
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

  // A call that ends at any signal, whatever its handler asked for, and by whose end programs know
  // that one came: a main thread that pauses until it is told to leave, or sleeps.
  bool is_ended_by_signals() const;
};

bool find_sleeping_thread(int tid, SleepingThread& out);

// Innermost first, in `arena`; the number of frames. 0: it does not sleep there any more, or there
// is no memory.
uint32_t walk_sleeping_thread(const SleepingThread& thread, Arena& arena, const uintptr_t*& pcs);

}  // namespace assay::inproc
