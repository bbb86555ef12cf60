// SocketOwners: which sockets, ends of pipes and accelerators belong to the target, found by its
// open files.
//
// In: live processes; out: sets of inodes, and names of devices. It is a separate group because
// reading the links of ten thousand open files takes 50 ms: it is due about once a second, less
// often where it is expensive. Processes that are new are read at once by note_new(). Between scans
// new connections are known by their port. Threads: one. Failures: files that may not be read leave
// the set empty, and refused() is true.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "capture/counters/counter_group.h"
#include "os/process/procfs.h"

namespace assay::capture {

// Which ends of a pipe a process holds.
struct PipeEnds {
  bool reads = false, writes = false;
};

// The sockets and pipes among the open files of one process.
struct Channels {
  std::vector<uint64_t> sockets;
  std::unordered_map<uint64_t, PipeEnds> pipes;  // by inode
  std::set<std::string> accelerators;            // "nvidia0"
  bool refused = false;                          // its files may not be read
};
Channels read_channels(const os::ProcFs& proc, pid_t pid, size_t most_files);

class SocketOwners : public CounterGroup {
 public:
  explicit SocketOwners(const os::ProcFs& proc) : proc_(proc) {}
  const char* name() const override { return "owners of sockets"; }
  void poll(const LiveTasks& tasks) override;  // reads the files of every process
  void note_new(const LiveTasks& tasks);       // of those that were never read
  void forget_the_gone(const LiveTasks& tasks) override;
  bool owns(uint64_t inode) const { return inode != 0 && owned_.contains(inode); }
  PipeEnds ends_of(uint64_t pipe) const {
    auto found = pipes_.find(pipe);
    return found == pipes_.end() ? PipeEnds{} : found->second;
  }
  const std::set<std::string>& accelerators() const { return accelerators_; }
  bool refused() const { return refused_; }  // some process's files may not be read

 private:
  static constexpr size_t kMaxFiles = 200'000;  // of one process

  Channels channels_of(pid_t pid);
  void collect();

  const os::ProcFs& proc_;
  bool refused_ = false;
  std::unordered_map<model::ProcessId, Channels> channels_;
  std::unordered_set<uint64_t> owned_;
  std::unordered_map<uint64_t, PipeEnds> pipes_;
  std::set<std::string> accelerators_;
};

}  // namespace assay::capture
