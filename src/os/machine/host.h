// What machine a capture ran on, and how much of it the target may use.
//
// In: /proc and /sys (both roots are parameters, tests hand in trees); out: plain values.
// Threads: pure functions. Failures: what cannot be read stays empty or zero.
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "base/clock.h"
#include "os/machine/cgroup.h"
#include "os/process/procfs.h"

namespace assay::os {

struct Host {
  std::string kernel;        // "6.1.0-18-amd64"
  std::string architecture;  // "x86_64"
  std::string hostname;
  std::string distribution;  // "Debian GNU/Linux 12 (bookworm)"
  std::string cpu_model;     // "AMD EPYC 7B13"
  uint32_t cpus_online = 0;
  uint32_t cpus_physical = 0;  // cores; fewer than CPUs with SMT; 0 when unknown
  uint64_t memory_bytes = 0;
  uint64_t swap_bytes = 0;
  std::string virtualisation;  // "none", "kvm", "virtual machine (Google …)"
  std::string clocksource;     // "tsc"; a slow one ("hpet") makes every timestamp a cost
  std::string huge_pages;      // transparent huge pages: "always", "madvise", "never"
};

Host read_host(const ProcFs& proc = ProcFs(), const std::string& root = "");

// How many CPUs' worth of time a process can get: the least of what is online, its affinity, its
// cpuset and its quota.
struct UsableCpus {
  double cpus = 0;            // 1.5 under a quota of one and a half
  uint32_t affinity = 0;      // CPUs in its mask
  std::string affinity_list;  // "0-1"
  CgroupLimits limits;
  std::string bound_by;  // "host", "affinity", "cpuset", "quota": what sets `cpus`
};
UsableCpus usable_cpus(pid_t pid, const Host& host, const ProcFs& proc, const CgroupFs& cgroups);

// Wall-clock time at which a process with this start time (ticks since boot) began.
int64_t start_utc_ns(uint64_t start_ticks, int64_t utc_now_ns, int64_t boottime_now_ns);

}  // namespace assay::os
