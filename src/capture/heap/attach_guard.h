// run_guarded(): work on a target that must be finished or undone, whatever becomes of Assay.
//
// A thread that makes a call for us is put back by its tracer. So the tracer is a process of its
// own, the guard, in its own session and under another name (also for pkill -f): SIGKILL, Ctrl-C or
// a crash of Assay does not reach it. When Assay is gone, the guard begins nothing new, puts
// everything back and ends. SIGKILL of the guard itself, by its process id or with its control
// group, leaves a thread that puts itself back (way_back.h). In: the work; out: what it found, and
// a descriptor if it opened one. The work runs on the only thread of a forked copy of Assay: it may
// use what it can see, and changes nothing here. Threads: safe everywhere. Failures: the work's own
// Error; one when no process can be made.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::capture {

inline constexpr const char* kGuardName = "attach-guard";  // as ps and killall see it

// How long the one thread was held, and where it stood.
struct InjectPause {
  int64_t ns = 0;
  bool at_malloc = false;  // else in a system call
};

struct GuardedResult {
  InjectPause pause;
  UniqueFd memory;  // invalid: none
};

// True once Assay is gone, and no process waits for the result.
using IsAbandoned = std::function<bool()>;

Result<GuardedResult> run_guarded(
    const std::function<Result<GuardedResult>(const IsAbandoned&)>& work);

}  // namespace assay::capture
