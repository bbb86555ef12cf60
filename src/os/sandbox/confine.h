// confine(): turns this process, for good, into one that can only compute on what it was given.
//
// For a process that reads bytes of strangers. If it was root, it runs as the user `nobody`
// afterwards. It holds no capability and can gain none, and may make only the system calls that
// computing needs: reading and writing descriptors that it has, memory, threads, time, the end. It
// cannot open, create or remove files, make sockets, run programs, or see or signal other
// processes. Threads: called while there is one thread. Failures: an Error; the caller must then
// end.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "os/sandbox/system_call_filter.h"

namespace assay::os {

struct ConfineRules {
  uint64_t heap_bytes = 1u << 30;  // of private writable memory
  uint64_t open_files = 256;
  bool ends_with_parent = false;  // when the thread that started it ends
  AllowedCalls calls = {};
};

Result<void> confine(const ConfineRules& rules);

// The part that also suits a process which goes on opening files as its user: no capability, and no
// way to gain one. A process of root stays root by number, so that it may still read its own files;
// but root without capabilities has no more rights over other users' files than any user.
Result<void> drop_capabilities();

// For a process that loads a library of somebody else's, whose system calls are not known: `nobody`
// where it was root, no capability, no way to gain one, no core, no file made longer; it ends with
// the thread that started it.
Result<void> become_nobody_for_good(uint64_t open_files);

}  // namespace assay::os
