// SocketOwners: which socket inodes belong to the target, found by its open files.
//
// In: live processes; out: a set of inodes. It is a separate group because reading the links of ten
// thousand open files takes 50 ms: it is due about once a second, less often where it is expensive.
// Processes that are new are read at once by note_new(). Between scans new connections are known by
// their port. Threads: one. Failures: files that may not be read leave the set empty, and refused()
// is true.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "capture/counters/counter_group.h"
#include "os/process/procfs.h"

namespace assay::capture {

class SocketOwners : public CounterGroup {
 public:
  explicit SocketOwners(const os::ProcFs& proc) : proc_(proc) {}
  const char* name() const override { return "owners of sockets"; }
  void poll(const LiveTasks& tasks) override;  // reads the files of every process
  void note_new(const LiveTasks& tasks);       // of those that were never read
  void forget_the_gone(const LiveTasks& tasks) override;
  bool owns(uint64_t inode) const { return inode != 0 && owned_.contains(inode); }
  bool refused() const { return refused_; }  // some process's files may not be read

 private:
  static constexpr size_t kMaxFiles = 200'000;  // of one process

  std::vector<uint64_t> socket_inodes(pid_t pid);
  void collect();

  const os::ProcFs& proc_;
  bool refused_ = false;
  std::unordered_map<model::ProcessId, std::vector<uint64_t>> inodes_;
  std::unordered_set<uint64_t> owned_;
};

}  // namespace assay::capture
