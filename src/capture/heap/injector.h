// Injector: brings the heap sampler into a running process and out of its way again.
//
// One thread of the target makes the calls: one that waits in a system call that can be restarted,
// or else the first one that enters malloc, where it holds no lock of the allocator. No other
// thread is stopped. The library is handed over as a memfd, so that it need not be visible in the
// target's file system. Everything that was changed in the thread is put back; the library stays
// mapped. In: a pid and libassay_heap.so; out: a channel whose hooks stand. Threads: safe
// everywhere. The tracer is a process of its own (attach_guard.h), so the target continues even if
// Assay is killed meanwhile. Failures: Errors with their reason.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "capture/heap/attach_guard.h"
#include "capture/heap/heap_channel.h"
#include "os/process/procfs.h"

namespace assay::capture {

struct InjectOptions {
  std::string library;
  uint64_t rate_bytes = 512 << 10;
  uint64_t ring_bytes = HeapChannel::kDefaultRingBytes;
  uint64_t start_ticks = 0;  // of the process that is meant (kinship.h); 0: any process
  // Called when an earlier attach is still being undone, which is waited for (not for ever).
  std::function<void()> on_wait;
};

struct Injected {
  std::unique_ptr<HeapChannel> channel;
  InjectPause pause;
  std::string allocator;  // whose malloc is sampled
};

Result<Injected> inject_sampler(pid_t pid, const InjectOptions& options);
// Takes the hooks out. The channel may be dropped afterwards, not before.
Result<InjectPause> remove_sampler(pid_t pid, const std::string& library, uint64_t start_ticks = 0);

// The channel that a process made itself when it was forked from an attached one. Touches nothing
// in it; needs root. An Error as well while there is none (yet).
Result<std::unique_ptr<HeapChannel>> open_forked_channel(const os::ProcFs& proc, pid_t pid);

}  // namespace assay::capture
