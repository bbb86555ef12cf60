// The signal with which libassay interrupts threads: chosen, installed and dispatched in one place.
//
// SIGPROF where the host does not use it, else a free real-time signal. The handler stays
// installed, because a pending signal must always find it. It preserves errno, and passes timers'
// signals to the CPU profiler and queued ones to the stack collector. All others are ignored.
#pragma once

#include <csignal>

namespace assay::inproc {

// `wanted` 0: choose. The signal, with the handler in place; 0: the host uses all signals that
// could be used.
int take_profiling_signal(int wanted);

// Called in the handler.
void on_cpu_timer(const siginfo_t& info, const void* context);
void on_stack_request(const siginfo_t& info, const void* context);

}  // namespace assay::inproc
