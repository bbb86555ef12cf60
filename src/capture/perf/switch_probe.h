// Tells whether the switch events of every CPU really record every switch.
//
// Some kernels (seen on 6.18) stop recording tracepoints and software events in the context of a
// CPU's idle task, so that a thread's way back from sleep leaves no record and its waits seem to
// last until it sleeps again. Looking beats trusting: on each CPU a thread of ours sleeps a few
// times, and each of its returns must be in the ring. Takes some ten milliseconds. Threads: one per
// CPU for that time.
#pragma once

#include <map>
#include <vector>

#include <sys/types.h>

namespace assay::capture {

// How often a thread of ours came back to its CPU.
struct ProbeThread {
  int cpu = 0;
  pid_t tid = 0;
  int returns = 0;  // 0: it may not run on that CPU
};

// Sleeps a few times on each CPU, on all of them at once.
std::vector<ProbeThread> sleep_on_each_cpu(const std::vector<int>& cpus);

// Whether each thread was seen to be switched in as often as it came back.
bool all_returns_seen(const std::vector<ProbeThread>& threads,
                      const std::map<pid_t, int>& switched_in);

}  // namespace assay::capture
