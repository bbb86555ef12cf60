// ThreadTaker: finds a thread of the target that may make calls for us, and has it make them.
//
// It takes a thread that waits in a system call that can be restarted, or else the first one that
// enters malloc. The thread is put back in every case, and no thread stays traced. In: a plan, and
// the work to do with the thread; out: how long it was held. Threads: one; it becomes the tracer.
// Failures: no such thread for ten seconds, a target that is gone or stopped, what seccomp forbids,
// and those of the work.
#pragma once

#include <functional>

#include "base/result.h"
#include "capture/heap/attach_guard.h"
#include "capture/heap/hijacked_thread.h"
#include "capture/heap/injection_plan.h"
#include "capture/heap/tracees.h"
#include "os/process/procfs.h"

namespace assay::capture {

class ThreadTaker {
 public:
  using Use = std::function<Result<void>(HijackedThread&)>;
  ThreadTaker(const InjectionPlan& plan, const IsAbandoned& is_abandoned)
      : plan_(plan), is_abandoned_(is_abandoned) {}

  Result<InjectPause> run(const Use& use);

 private:
  Result<void> check_still_running();
  Result<bool> try_waiting(pid_t tid, const Use& use);
  Result<bool> try_malloc(const Use& use);
  Result<bool> try_breakpoint(Tracees& tracees, const Use& use);
  Result<bool> use_at_malloc(Tracees& tracees, const std::function<void()>& end_watch,
                             const Use& use);
  Result<void> check_filters(pid_t tid) const;
  struct Stopped {
    pid_t tid = 0;
    uint64_t rewind_to = 0;  // malloc's entry; 0: it waits in a system call
    TimeNs since = 0;
  };
  Result<bool> take(Tracees& tracees, const Stopped& stopped, const Use& use);

  const InjectionPlan& plan_;
  const IsAbandoned& is_abandoned_;
  os::ProcFs proc_;
  InjectPause pause_;
  bool saw_stop_ = false;  // job control's, since the last look
};

}  // namespace assay::capture
