#include "session/stat.h"

#include <algorithm>
#include <map>

#include <unistd.h>

#include "capture/stat/counter_set.h"
#include "os/procfs.h"

namespace assay::session {
namespace {

constexpr int64_t kTickNs = 100 * kNsPerMs;

struct Switches {
  uint64_t voluntary = 0, involuntary = 0;
};

std::map<pid_t, Switches> switches_of(const os::ProcFs& proc,
                                      const target::ResolvedTarget& target) {
  std::map<pid_t, Switches> all;
  for (pid_t pid : target.pids()) {
    for (pid_t tid : proc.tids(pid)) {
      auto status = proc.thread_status(pid, tid);
      if (status) all[tid] = {status->voluntary_switches, status->involuntary_switches};
    }
  }
  return all;
}

bool any_alive(const os::ProcFs& proc, const target::ResolvedTarget& target) {
  return std::ranges::any_of(target.pids(), [&](pid_t pid) {
    auto stat = proc.stat(pid);
    return stat && stat->state != 'Z';
  });
}

void add_switches(const std::map<pid_t, Switches>& before, const std::map<pid_t, Switches>& after,
                  StatOutcome& outcome) {
  for (const auto& [tid, now] : after) {
    auto then = before.find(tid);
    if (then == before.end()) continue;
    outcome.voluntary_switches += now.voluntary - std::min(now.voluntary, then->second.voluntary);
    outcome.involuntary_switches +=
        now.involuntary - std::min(now.involuntary, then->second.involuntary);
  }
}

// Counts until the time is over, it is told to stop or the target is gone; false for the last.
bool count_until(TimeNs end, const StatOptions& options, const std::atomic<bool>& stop,
                 const os::ProcFs& proc, const target::ResolvedTarget& target,
                 capture::CounterSet& counters, const IntervalSeen& interval_seen) {
  TimeNs begin = monotonic_ns(), since = begin;
  model::Counts last = counters.read_all();
  while (!stop && monotonic_ns() < end) {
    TimeNs wake = std::min(end, monotonic_ns() + kTickNs);
    if (options.interval_ns > 0) wake = std::min(wake, since + options.interval_ns);
    usleep(static_cast<useconds_t>(std::max<int64_t>(0, wake - monotonic_ns()) / 1000 + 1));
    TimeNs now = monotonic_ns();
    if (options.interval_ns > 0 && now >= since + options.interval_ns) {
      model::Counts counts = counters.read_all();
      interval_seen(static_cast<double>(since - begin) / 1e9,
                    static_cast<double>(now - since) / 1e9, capture::counts_between(last, counts));
      last = counts;
      since = now;
    }
    if (!any_alive(proc, target)) return false;
  }
  return true;
}

}  // namespace

Result<StatOutcome> stat(const StatOptions& options, const std::atomic<bool>& stop,
                         const IntervalSeen& interval_seen) {
  os::ProcFs proc;
  target::Surroundings surroundings;
  surroundings.self = getpid();
  surroundings.command = "assay stat";
  auto target = target::resolve(options.target, proc, surroundings);
  if (!target) return std::unexpected(target.error());
  std::vector<pid_t> tids;
  for (pid_t pid : target->pids()) {
    for (pid_t tid : proc.tids(pid)) tids.push_back(tid);
  }
  capture::CounterSet counters(os::real_counter_kernel());
  if (auto opened = counters.open(tids); !opened) return std::unexpected(opened.error());

  auto switches = switches_of(proc, *target);
  TimeNs begin = monotonic_ns();
  model::Counts first = counters.read_all();
  StatOutcome outcome;
  outcome.target_ended = !count_until(begin + options.duration_ns, options, stop, proc, *target,
                                      counters, interval_seen);
  outcome.counts = capture::counts_between(first, counters.read_all());
  outcome.seconds = static_cast<double>(monotonic_ns() - begin) / 1e9;
  add_switches(switches, switches_of(proc, *target), outcome);
  outcome.processes = target->processes.size();
  outcome.threads = counters.tids().size();
  outcome.user_only = counters.user_only();
  for (const target::ResolvedProcess& process : target->processes) {
    for (const target::ResolvedThread& thread : process.threads) {
      if (options.per_thread)
        outcome.per_thread.push_back(
            {process.pid, thread.tid, thread.name, counters.read_thread(thread.tid)});
    }
  }
  return outcome;
}

model::Counts countable_events() {
  capture::CounterSet counters(os::real_counter_kernel());
  (void)counters.open({static_cast<pid_t>(gettid())});
  return counters.read_all();
}

}  // namespace assay::session
