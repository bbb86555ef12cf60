// How libassay_heap.so is told to work: three C functions for the injector, and the environment.
//
// Attached: the injector loads the library with dlopen on a thread that stands at malloc's entry
// (so it holds no lock of the allocator), calls assay_heap_attach there, and later
// assay_heap_detach on a thread that stands so again. Preloaded: the environment variable
// ASSAY_HEAP_CHANNEL names the channel (below), read with secure_getenv: a setuid program ignores
// it.
//
// Threads: one caller at a time (a second one gets kHeapBusy). All other threads run on meanwhile.
// The functions keep errno, never throw, never end the process, and return within milliseconds.
// Failure: a number from HeapProblem or HeapAttachProblem is returned, and the target is as it was.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum HeapAttachProblem {
  kHeapBadChannel = 100,  // the file cannot be mapped, or is no channel
  kHeapBusy = 101,        // somebody else is attaching, detaching, or attached
};

// Maps the channel behind `channel_fd` (which stays the caller's to close), hooks the allocation
// functions of every loaded object and sets the channel's `ready`. Sampling begins when the
// channel's mode says so. 0: done. In a program that has the library preloaded, only the channel is
// changed.
int assay_heap_attach(int channel_fd);

// Puts every hooked slot back, unmaps the channel, forgets the sampled addresses. The library stays
// mapped. 0: done, also when nothing was attached.
int assay_heap_detach(void);

// The version of the channel that this library writes (kHeapChannelVersion).
uint32_t assay_heap_version(void);

#ifdef __cplusplus
}
#endif

// ASSAY_HEAP_CHANNEL=PATH        a channel made by Assay (a file, or /proc/self/fd/N of an
// inherited memfd).
//                                The first process that opens it owns it; others leave it alone.
//                                After an exec in the same process the new program goes on with it.
// ASSAY_HEAP_CHANNEL=PATH-with-%p  %p becomes the process id, and each process (forked children and
// what they
//                                execute too) makes its own file there: magic, version, pid and
//                                ring filled in, mode sampling.
// ASSAY_HEAP_RATE=BYTES          mean bytes between samples, for channels made by the process
// itself
//                                (default 524288).
// ASSAY_HEAP_RING=BYTES          their ring's size (default 1 MiB; rounded up to a power of two).
