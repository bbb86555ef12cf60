// Target: "the server on :8000" becomes processes with roles.
//
// In: the request and /proc. Out: the processes to follow, or an Error that names the candidates or
// the command that fixes it. Matching is by what the kernel knows, never by argv, and never picks
// Assay, the processes it was started from, a shell, or what the caller excludes (the load
// generator); a shell that is given by --pid is accepted. Reads only. Threads: safe everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "os/process/procfs.h"

namespace assay::target {

// Exactly one of pids, name, exe, port, cgroup and command is given. A command is launched by the
// session, which then resolves its pid.
struct TargetSpec {
  std::vector<pid_t> pids = {};
  std::string name = {};
  std::string exe = {};
  std::string cgroup = {};
  int port = 0;
  bool include_children = true;
  std::vector<std::string> command = {};
  bool output_to_stderr = false;  // the command's: Assay's own goes to standard output alone
};

struct ResolvedThread {
  pid_t tid = 0;
  std::string name;
};

struct ResolvedProcess {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string exe;  // without " (deleted)"
  bool exe_deleted = false;
  std::string comm;
  std::string cmdline;  // joined by spaces; for people
  std::string cgroup;
  std::string role;
  uid_t uid = 0;
  uint64_t start_ticks = 0;  // since boot
  std::vector<ResolvedThread> threads;
};

struct ResolvedTarget {
  // The roots first, oldest first; then their descendants, oldest first. Never empty.
  std::vector<ResolvedProcess> processes;
  size_t root_count = 0;  // how many of them are roots

  const ResolvedProcess& main() const { return processes.front(); }
  std::vector<pid_t> pids() const;
};

struct Surroundings {
  pid_t self = 0;  // Assay's own pid
  std::vector<pid_t> excluded =
      {};  // the load generator's processes; their children are excluded too
  std::string command = "assay record";  // for remedies: what to call again with --pid
};

Result<ResolvedTarget> resolve(const TargetSpec& spec, const os::ProcFs& proc,
                               const Surroundings& surroundings);

}  // namespace assay::target
