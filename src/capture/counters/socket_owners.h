// SocketOwners: which socket inodes belong to the target, found by its open files.
//
// In: live processes; out: a set of inodes. A process's files are read again about once a second,
// less often when it has many: a scan that took t is followed by a rest of 200 t, so ten thousand
// open files cost half a percent of a CPU, not ten. Between scans new connections are known by
// their port. Threads: one. Failures: files that may not be read leave the set empty and are told
// once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "capture/counters/counter_group.h"
#include "os/procfs.h"

namespace assay::capture {

class SocketOwners {
 public:
  SocketOwners(const os::ProcFs& proc, Clock clock) : proc_(proc), clock_(std::move(clock)) {}

  void refresh(const std::vector<LiveProcess>& processes);
  bool owns(uint64_t inode) const { return inode != 0 && owned_.contains(inode); }
  bool refused() const { return refused_; }  // some process's files may not be read

 private:
  static constexpr int64_t kIntervalNs = kNsPerSecond;
  static constexpr int64_t kRestFactor = 200;
  static constexpr size_t kMaxFiles = 200'000;  // of one process

  struct Files {
    TimeNs next_scan_ns = 0;
    std::vector<uint64_t> inodes;
  };
  void scan(pid_t pid, Files& files);

  const os::ProcFs& proc_;
  Clock clock_;
  bool refused_ = false;
  std::unordered_map<model::ProcessId, Files> processes_;
  std::unordered_set<uint64_t> owned_;
};

}  // namespace assay::capture
