// libassay's own threads: created without our own hooks, with every signal blocked, never sampled.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::inproc {

// Starts a detached thread; false: the system has none left. The name shows in /proc and top.
bool start_own_thread(const char* name, void (*body)(void*), void* argument);
bool is_own_thread(int tid);
void forget_own_threads();  // in a forked child, which does not have them

int current_tid();

// Whether a thread of this process blocks the signal; false for one that has ended. Not
// async-signal-safe.
bool thread_blocks(int tid, int signal);
// The same, from the text of /proc/self/task/TID/status.
bool status_blocks(const char* status, int signal);

// Calls `visit` with the id of every thread of this process. Not async-signal-safe. False: no
// /proc.
bool for_each_thread(void (*visit)(int tid, void* argument), void* argument);

}  // namespace assay::inproc
