// What each thread of a target keeps for the heap sampler: a few bytes of static TLS, all zero at
// first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::inject {

struct ThreadState {
  uint64_t bytes_left = 0;  // until the next sample, or the next check whether sampling is on
  uint64_t rate_bytes = 0;  // that bytes_left was drawn with; 0: not sampling
  uint64_t random = 0;
  uint32_t pid = 0, tid = 0;   // of the process that `tid` was asked in; a fork makes both stale
  bool is_busy = false;        // inside the sampler: its own allocations are ignored
  bool holds_changes = false;  // no thread may change slots while this thread forks
  bool is_probe = false;       // the next allocation only shows that hooks are in place
};

// constinit: without it every access would check whether it was constructed.
extern constinit thread_local ThreadState thread_state;

// The whole fast path: true when the sampler must handle the allocation of `bytes`.
inline bool count_bytes(size_t bytes) {
  if (__builtin_expect(bytes > thread_state.bytes_left, 0)) return true;
  thread_state.bytes_left -= bytes;
  return false;
}

}  // namespace assay::inject
