// FdKinds: finds the kind of a file descriptor of the target, for waits on it.
//
// Answers are cached per (process, fd) and renewed when they are older than a second, so that a
// wait usually costs one hash lookup. The socket tables of /proc are read at most once a second.
// Threads: one owner. Failures: FdKind::none when it cannot be known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include <sys/types.h>

#include "base/clock.h"
#include "model/sample.h"
#include "os/process/procfs.h"

namespace assay::capture {

class FdKinds {
 public:
  explicit FdKinds(const os::ProcFs& proc) : proc_(proc) {}

  model::FdKind kind_of(pid_t pid, int fd, TimeNs now);
  void forget(pid_t pid);

 private:
  struct Entry {
    model::FdKind kind = model::FdKind::none;
    TimeNs looked_up_at = 0;
  };
  struct SocketTable {
    std::unordered_map<uint64_t, model::FdKind> kind_by_inode;
    TimeNs read_at = INT64_MIN / 2;
  };

  model::FdKind look_up(pid_t pid, int fd, TimeNs now);
  model::FdKind socket_kind(pid_t pid, std::string_view link, TimeNs now);
  void read_sockets(pid_t pid, SocketTable& table);

  const os::ProcFs& proc_;
  std::unordered_map<uint64_t, Entry> entries_;  // pid << 32 | fd
  std::unordered_map<pid_t, SocketTable> sockets_;
};

// The kind that is visible in a link of /proc/PID/fd; `other` for sockets.
model::FdKind kind_of_link(std::string_view link);

}  // namespace assay::capture
