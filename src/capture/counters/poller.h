// CounterPoller: reads the kernel's counters of the target, the machine and Assay during a capture.
//
// In: the living tasks, from a callback of the session; out: model::Series and model::Point to a
// CounterSink. poll_all() opens and closes the window: every series gets a point there. poll() in
// between reads what is due: scheduler accounts of threads every 200 ms, the rest every second or
// less often. Its own CPU time is measured; with many threads it polls less often, so that it stays
// near one percent of one CPU, and says so. Names and units: docs/counters.md. Threads: every call
// from one thread; the callback is called from it too. Failures: none. A counter that cannot be
// read has no points; where evidence is lost by that, there is a QualityNote. A thread that ends
// between two polls keeps the last values seen.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include "capture/counters/counter_group.h"
#include "capture/counters/other_processes.h"
#include "capture/counters/socket_counters.h"
#include "capture/devices/device_reader.h"
#include "os/events/counter_kernel.h"
#include "os/machine/cgroup.h"
#include "os/process/procfs.h"

namespace assay::capture {

struct CounterOptions {
  std::string proc_root = "/proc";
  std::string path_prefix;                     // before the cgroup mounts; tests only
  int64_t sched_interval_ns = 200 * kNsPerMs;  // run and run-queue time of threads
  int64_t interval_ns = kNsPerSecond;          // the rest
  double cpu_share = 0.015;                    // of one CPU that all polls together may take
  Clock clock = monotonic_ns;                  // stamps the points
  Clock cpu_clock;                             // CPU time of this thread; empty: the kernel's
  SocketSource socket_source;                  // empty: the kernel's
  UnixSource unix_source;                      // empty: the kernel's
  pid_t self = ::getpid();                     // Assay's own process
  os::CounterKernel* hardware = nullptr;       // null: hardware counters are not read
  DeviceReader::Options devices;               // without a program accelerators are not read
  bool devices_always = false;                 // tests only: also where the target has none open
};

class CounterPoller {
 public:
  using TaskSource = std::function<LiveTasks()>;

  // `next_series` is shared with the other parts that create series in the run. `sink` must outlive
  // the poller.
  CounterPoller(CounterOptions options, TaskSource tasks, CounterSink& sink,
                std::atomic<uint32_t>& next_series);
  ~CounterPoller();

  // Reads every group and writes a point in every series. Call at the beginning and at the end of
  // the window.
  void poll_all(TimeNs now_ns);
  // Reads the groups that are due. Returns when the next group will be due; calling earlier does
  // nothing.
  TimeNs poll(TimeNs now_ns);
  int64_t cpu_ns() const { return cpu_ns_; }  // what polling has cost so far

 private:
  struct Scheduled {
    std::unique_ptr<CounterGroup> group;
    Cadence cadence;
    bool slowed = false;  // already noted
  };
  void add_groups();
  void run(Scheduled& scheduled, const LiveTasks& tasks, TimeNs now_ns);
  int64_t cpu_now_ns() const;
  void note_slow_groups();

  CounterOptions options_;
  TaskSource tasks_;
  os::ProcFs proc_;
  os::CgroupFs cgroups_;
  SeriesBook book_;
  int64_t cpu_ns_ = 0;
  std::vector<Scheduled> groups_;
};

}  // namespace assay::capture
