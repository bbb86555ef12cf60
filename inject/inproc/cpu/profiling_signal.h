// The signal that libassay interrupts threads with: chosen, installed and told apart in one place.
//
// SIGPROF where the host leaves it alone, else a free real-time signal. The handler stays once
// installed: a signal on its way to a thread must always find it. It keeps errno, and passes
// timers' signals to the CPU profiler and queued ones to the stack collector. Anything else that
// arrives is ignored.
#pragma once

#include <csignal>

namespace assay::inproc {

// `wanted` 0: choose. The signal, with the handler in place; 0: the host uses every one that could
// be used.
int take_profiling_signal(int wanted);

// Called in the handler.
void on_cpu_timer(const siginfo_t& info, const void* context);
void on_stack_request(const siginfo_t& info, const void* context);

}  // namespace assay::inproc
