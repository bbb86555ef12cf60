// How libassay_heap.so is controlled: three C functions for the injector, and the environment.
//
// Attached: the injector loads the library with dlopen on a thread that holds no lock of the
// allocator (at malloc's entry, or in a system call that the kernel restarts), calls
// assay_heap_attach there, and later assay_heap_detach on a thread in the same situation.
// Preloaded: the environment variable ASSAY_HEAP_CHANNEL names the channel (below), read with
// secure_getenv: a setuid program ignores it.
//
// Threads: one caller at a time (a second one gets kHeapBusy). All other threads keep running. The
// functions preserve errno, never throw, never end the process, and return within milliseconds.
// Failure: a number from HeapProblem or HeapAttachProblem is returned, and the target is unchanged.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum HeapAttachProblem {
  kHeapBadChannel = 100,  // the file cannot be mapped, or is no channel
  kHeapBusy = 101,        // another caller is attaching, detaching, or attached
};

// Maps the channel behind `channel_fd` (which the caller must close), hooks the allocation
// functions of every loaded object and sets the channel's `ready`. Sampling begins when the
// channel's mode says so. 0: done. In a program that has the library preloaded, only the channel is
// changed.
int assay_heap_attach(int channel_fd);

// Restores every hooked slot, unmaps the channel, drops the sampled addresses. The library stays
// mapped. 0: done, also when nothing was attached.
int assay_heap_detach(void);

// The version of the channel that this library writes (kHeapChannelVersion).
uint32_t assay_heap_version(void);

#ifdef __cplusplus
}
#endif

// ASSAY_HEAP_CHANNEL=PATH
//     A channel made by Assay: a file, or /proc/self/fd/N of an inherited memfd. The first process
//     that opens it owns it; others do not use it. After an exec in the same process the new
//     program continues with it.
// ASSAY_HEAP_CHANNEL=PATH-with-%p
//     %p becomes the process id. Each process (also forked children, and programs that they
//     execute) creates its own file there, with magic, version, pid and ring filled in and mode
//     sampling.
// ASSAY_HEAP_RATE=BYTES
//     Mean bytes between samples, for channels that the process creates (default 524288).
// ASSAY_HEAP_RING=BYTES
//     Ring size of these channels (default 1 MiB; rounded up to a power of two).
