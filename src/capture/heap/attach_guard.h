// run_guarded(): work on a target that must be finished or undone, whatever becomes of Assay.
//
// A breakpoint that stands in a target, or a thread that makes a call for us, must not be left
// alone: the next trap or the call's return would end the target. So the one who traces is a
// process of its own, in a session of its own and under another name: SIGKILL, Ctrl-C or a crash
// of Assay does not reach it. It notices that Assay is gone, begins nothing new, puts everything
// back and ends. In: the work; out: what it found, and a descriptor if it opened one. The work runs
// on the only thread of a forked copy of Assay: it may use what it can see, and changes nothing
// here. Threads: safe everywhere. Failures: the work's own Error; one when no process can be made.
// (SIGKILL of the guard itself, by its own process id, is what is left.)
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

// True once Assay is gone: nobody waits for the work any more.
using IsAbandoned = std::function<bool()>;

Result<GuardedResult> run_guarded(
    const std::function<Result<GuardedResult>(const IsAbandoned&)>& work);

}  // namespace assay::capture
