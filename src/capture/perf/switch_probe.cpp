#include "capture/perf/switch_probe.h"

#include <algorithm>
#include <thread>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace assay::capture {
namespace {

constexpr int kReturns = 4;
constexpr useconds_t kSleepUs = 1500;  // long enough for an idle CPU to go idle

void sleep_on(ProbeThread& probe) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(probe.cpu, &one);
  if (probe.cpu >= CPU_SETSIZE || sched_setaffinity(0, sizeof one, &one) != 0) return;
  probe.tid = static_cast<pid_t>(syscall(SYS_gettid));
  for (int i = 0; i < kReturns; ++i) usleep(kSleepUs);
  probe.returns = kReturns;
}

}  // namespace

std::vector<ProbeThread> sleep_on_each_cpu(const std::vector<int>& cpus) {
  std::vector<ProbeThread> probes;
  for (int cpu : cpus) probes.push_back({cpu, 0, 0});
  std::vector<std::thread> threads;
  for (ProbeThread& probe : probes) threads.emplace_back([&probe] { sleep_on(probe); });
  for (std::thread& thread : threads) thread.join();
  return probes;
}

bool all_returns_seen(const std::vector<ProbeThread>& threads,
                      const std::map<pid_t, int>& switched_in) {
  return std::ranges::all_of(threads, [&](const ProbeThread& probe) {
    auto seen = switched_in.find(probe.tid);
    return probe.returns == 0 || (seen != switched_in.end() && seen->second >= probe.returns);
  });
}

}  // namespace assay::capture
