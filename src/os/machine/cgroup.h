// CgroupFs: which control groups a process lives in, what they allow it and what they have cost it.
//
// In: /proc/PID/cgroup and this process's mountinfo; out: plain values. Knows v1 (one hierarchy per
// controller), v2 (unified) and both at once. A limit of a parent binds its children, so limits are
// the smallest on the way up, and throttling is told for every level that has a quota.
// Both roots are parameters, so that tests hand in a directory tree.
// Threads: const after construction, safe everywhere.
// Failures: a controller that is not there leaves its directory or optional empty; only a process
// that cannot be found is an Error. Follows Documentation/admin-guide/cgroup-v{1,2} of the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace assay::os {

// A controller's directory for one process: where it is, and how far up its parents reach.
struct CgroupDir {
  std::string dir;    // "/sys/fs/cgroup/cpu/app"; empty: no such controller here
  std::string mount;  // "/sys/fs/cgroup/cpu": the walk up ends here
  std::string path;   // "/app": below the mount
  bool v2 = false;
};

struct CgroupPlace {
  std::string name;  // for people: the path under the cpu controller, or the unified one
  CgroupDir cpu, cpuacct, memory, cpuset;
};

struct CgroupCpuStat {
  uint64_t periods = 0;            // enforcement periods in which something wanted to run
  uint64_t throttled_periods = 0;  // of these, the ones that ran out of quota
  int64_t throttled_ns = 0;        // time that runnable work was held back, summed over CPUs
};

// One level of the cpu hierarchy with what it has cost so far.
struct CgroupCpuLevel {
  std::string path;
  std::optional<double> quota_cpus;  // nullopt: unlimited
  CgroupCpuStat stat;
};

struct CgroupLimits {
  std::optional<double> quota_cpus;      // smallest on the way up: 1.5 = one and a half CPUs
  std::string quota_path;                // the level that sets it
  std::optional<uint64_t> memory_bytes;  // smallest on the way up
  std::string cpuset;                    // "0-1"; empty when unknown
  std::optional<uint32_t> cpuset_cpus;
};

// What people call the control group of this path: "nginx.service", "container 0123456789ab",
// "user@1000.service"; the path itself where it is neither, "" for the root.
std::string service_name(std::string_view cgroup_path);

class CgroupFs {
 public:
  // `path_prefix` is put before every mount point; tests use it, the real machine leaves it empty.
  explicit CgroupFs(std::string proc_root = "/proc", std::string path_prefix = "");

  Result<CgroupPlace> find(pid_t pid) const;
  CgroupLimits limits(const CgroupPlace& place) const;
  // The process's own level first, then every parent that has a quota.
  std::vector<CgroupCpuLevel> cpu_levels(const CgroupPlace& place) const;
  std::optional<int64_t> usage_ns(const CgroupPlace& place) const;  // CPU time of the own level
  std::optional<uint64_t> memory_bytes(const CgroupPlace& place) const;  // charged to the own level

 private:
  struct Mount {
    std::string mount_point, root;         // root: which part of the hierarchy is mounted
    std::vector<std::string> controllers;  // v1
    bool v2 = false;
  };
  CgroupDir place_in(const Mount& mount, std::string_view path) const;
  void read_mounts();

  std::string proc_root_, path_prefix_;
  std::vector<Mount> mounts_;
};

}  // namespace assay::os
