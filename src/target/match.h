// Match: finds the processes of a name, a program file, a port or a cgroup.
//
// Every match is by what the kernel knows (comm, /proc/PID/exe, sockets, cgroup), never by argv.
// These functions only find. resolve() leaves out shells and Assay itself, and decides which
// processes belong together.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "os/process/procfs.h"
#include "target/process_table.h"

namespace assay::target {

// By the process's comm or by the name of its program file.
std::vector<pid_t> match_name(const ProcessTable& table, const std::string& name);

// By /proc/PID/exe: the same path once links are followed, the same file by inode, or the path of a
// file that was removed or replaced since.
std::vector<pid_t> match_exe(const ProcessTable& table, const os::ProcFs& proc,
                             const std::string& path);

struct PortHolder {
  pid_t pid = 0;
  std::string net_namespace;  // "net:[…]"; empty for Assay's own
};
struct PortMatch {
  std::vector<PortHolder> holders;
  bool listening = false;  // the port has a listener, though perhaps not one that we may inspect
  uid_t listener_uid = 0;  // of that listener
  std::map<uint16_t, pid_t> ports;  // every known listening port, with one process that holds it
};
// Looks in Assay's own network namespace first, and in the others only when no process listens
// there.
PortMatch match_port(const ProcessTable& table, const os::ProcFs& proc, uint16_t port);

struct CgroupMatch {
  std::string path;  // as /proc/PID/cgroup writes it
  std::vector<pid_t> pids;
  std::vector<std::string> known;  // cgroups that hold processes
};
// A path below a cgroup mount (v1 or v2), or relative to one. Subgroups are included.
CgroupMatch match_cgroup(const ProcessTable& table, const os::ProcFs& proc,
                         const std::string& path);

// The most specific cgroup of a process: the v2 one, else the cpu controller's, else any that is
// not the root. `text` is a /proc/PID/cgroup file.
std::string main_cgroup(std::string_view text);

// Names close to `name`: one contains the other, or at most two letters differ.
bool is_similar(std::string_view name, std::string_view other);

}  // namespace assay::target
