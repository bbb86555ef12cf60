// Checks that the switch events of every CPU record every switch.
//
// Some kernels (seen on 6.18) stop recording tracepoints and software events in the context of a
// CPU's idle task, so that a thread's return from sleep leaves no record and its wait seems to last
// until it sleeps again. Therefore a thread of ours sleeps a few times on each CPU, and each of its
// returns must be in the ring. Takes some ten milliseconds. Threads: one per CPU for that time.
#pragma once

#include <map>
#include <vector>

#include <sys/types.h>

namespace assay::capture {

// How often a thread of ours returned to its CPU.
struct ProbeThread {
  int cpu = 0;
  pid_t tid = 0;
  int returns = 0;  // 0: it may not run on that CPU
};

// Sleeps a few times on each CPU, on all of them at once.
std::vector<ProbeThread> sleep_on_each_cpu(const std::vector<int>& cpus);

// Whether each thread has as many switch-in records as returns.
bool all_returns_seen(const std::vector<ProbeThread>& threads,
                      const std::map<pid_t, int>& switched_in);

}  // namespace assay::capture
