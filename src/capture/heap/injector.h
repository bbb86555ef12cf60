// Injector: brings the heap sampler into a running process and out of its way again.
//
// One thread of the target makes the calls: one that waits in a system call that can be taken up
// again, or else the first that comes to malloc's entry, where it holds no lock of the allocator.
// Nobody else is stopped. The library is handed over as a memfd, so that it need not be visible in
// the target's file system. Everything that was changed in the thread is put back; the library
// stays mapped. In: a pid and libassay_heap.so; out: a channel whose hooks stand. Threads: each
// call runs in a thread of its own, since ptrace knows tracers by thread. Failures: Errors with
// their reason; the target goes on in any case.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "capture/heap/heap_channel.h"

namespace assay::capture {

struct InjectOptions {
  std::string library;
  uint64_t rate_bytes = 512 << 10;
  uint64_t ring_bytes = HeapChannel::kDefaultRingBytes;
};

// How long the one thread was held, and where it stood.
struct InjectPause {
  int64_t ns = 0;
  bool at_malloc = false;  // else in a system call
};

struct Injected {
  std::unique_ptr<HeapChannel> channel;
  InjectPause pause;
  std::string allocator;  // whose malloc is sampled
};

Result<Injected> inject_sampler(pid_t pid, const InjectOptions& options);
// Takes the hooks out. The channel may be dropped afterwards, not before.
Result<InjectPause> remove_sampler(pid_t pid, const std::string& library);

}  // namespace assay::capture
