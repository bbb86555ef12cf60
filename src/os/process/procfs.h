// ProcFs: what /proc says of processes and of the machine, as plain values.
//
// The root is a parameter: tests hand in a directory tree as a fake. Every call reads afresh; a
// process that ended meanwhile yields an Error with code ESRCH or ENOENT, or is left out of lists.
// Threads: const, safe everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "base/result.h"

namespace assay::os {

struct ProcStat {  // /proc/PID/stat or /proc/PID/task/TID/stat
  pid_t pid = 0;
  std::string comm;
  char state = '?';
  pid_t parent = 0;
  uint64_t minor_faults = 0, major_faults = 0;
  int64_t utime_ns = 0, stime_ns = 0;  // kernel's own accounting, tick resolution
  int64_t children_ns = 0;             // CPU time of children that it has waited for, and theirs
  uint64_t start_ticks = 0;            // since boot
  uint32_t thread_count = 0;
  bool of_kernel = false;  // a thread of the kernel, which has no program
};

struct SchedStat {  // /proc/PID/task/TID/schedstat: exact
  int64_t run_ns = 0;
  int64_t run_delay_ns = 0;
  uint64_t timeslices = 0;
};

struct TaskStatus {  // /proc/PID/status
  uid_t uid = 0;
  pid_t tgid = 0, parent = 0, tracer = 0;
  std::vector<pid_t> namespace_tids;  // NSpid: outermost first
  uint64_t rss_bytes = 0;
  uint64_t voluntary_switches = 0, involuntary_switches = 0;
  std::string cpus_allowed;  // "0-1"
  int seccomp = 0;
};

struct MapsEntry {  // one line of /proc/PID/maps
  uint64_t start = 0, end = 0, file_offset = 0;
  bool readable = false, writable = false, executable = false;
  uint64_t inode = 0;
  uint32_t dev_major = 0, dev_minor = 0;
  std::string path;  // without " (deleted)"; "[vdso]"; empty for anonymous
  bool deleted = false;
};

struct SyscallState {   // /proc/PID/task/TID/syscall of a blocked thread
  int64_t number = -1;  // −1: blocked outside a syscall (a page fault)
  uint64_t args[6] = {};
  uint64_t sp = 0, ip = 0;
};

class ProcFs {
 public:
  explicit ProcFs(std::string root = "/proc") : root_(std::move(root)) {}
  const std::string& root() const { return root_; }

  std::vector<pid_t> pids() const;
  std::vector<pid_t> tids(pid_t pid) const;
  Result<ProcStat> stat(pid_t pid) const;
  Result<ProcStat> thread_stat(pid_t pid, pid_t tid) const;
  Result<SchedStat> thread_schedstat(pid_t pid, pid_t tid) const;
  Result<TaskStatus> status(pid_t pid) const;
  Result<TaskStatus> thread_status(pid_t pid, pid_t tid) const;
  Result<std::vector<MapsEntry>> maps(pid_t pid) const;
  Result<std::string> exe(pid_t pid) const;  // link text, " (deleted)" kept
  Result<std::vector<std::string>> cmdline(pid_t pid) const;
  Result<std::string> comm(pid_t pid, pid_t tid) const;
  Result<std::string> fd_link(pid_t pid, int fd) const;
  std::vector<int> fds(pid_t pid) const;
  // nullopt: the thread is running.
  Result<std::optional<SyscallState>> syscall(pid_t pid, pid_t tid) const;
  // Kernel function a blocked thread sleeps in; "" when hidden or running.
  std::string wchan(pid_t pid, pid_t tid) const;

  // Whole content of a file below the root, e.g. "stat", "123/io", "pressure/cpu".
  Result<std::string> read(const std::string& relative_path) const;

 private:
  Result<ProcStat> parse_stat(const std::string& relative_path) const;
  Result<TaskStatus> parse_status(const std::string& relative_path) const;
  std::string root_;
};

// Parses one line of a maps file; nullopt when it is not one.
std::optional<MapsEntry> parse_maps_line(std::string_view line);

// The inode in an fd link "socket:[123]"; nullopt when the link is of something else.
std::optional<uint64_t> socket_inode(std::string_view fd_link);

}  // namespace assay::os
