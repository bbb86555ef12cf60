// libassay's own threads: created past our own hooks, with every signal blocked, never sampled.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::inproc {

// Starts a detached thread; false: the system has none left. The name shows in /proc and top.
bool start_own_thread(const char* name, void (*body)(void*), void* argument);
bool is_own_thread(int tid);
void forget_own_threads();  // in a forked child: they did not come along

int current_tid();

// Calls `visit` with the id of every thread of this process. Not async-signal-safe. False: no
// /proc.
bool for_each_thread(void (*visit)(int tid, void* argument), void* argument);

}  // namespace assay::inproc
