// OtherProcesses: who else uses the host's CPUs and disks, and what they have to do with the
// target.
//
// In: /proc of all processes that are neither the target's nor Assay's; out: model::OtherUsers as
// facts, rewritten with every scan, so that a capture that is killed keeps the last. Processes of
// one name, service and relation are one user. The first scan is where counting begins; a process
// that comes later counts from its start, one that ends keeps what was last seen. CPU time of
// children that no scan saw is their parent's, who learns of it when it waits for them. Only
// processes that use something are asked for their open files, by which their relation is told.
// Memory bandwidth is not measured: it takes counters of the processor's uncore. Threads: one.
// Failures: what may not be read is left out; a process whose files may not be read is of unknown
// relation.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "capture/counters/counter_group.h"
#include "capture/counters/socket_counters.h"
#include "capture/counters/socket_owners.h"
#include "capture/counters/socket_peers.h"
#include "model/other_user.h"
#include "os/machine/cgroup.h"
#include "os/process/procfs.h"

namespace assay::capture {

// The unix sockets of a process's network namespace; a test hands in its own.
using UnixSource = std::function<Result<std::vector<os::UnixSocket>>(pid_t pid)>;

class OtherProcesses : public CounterGroup {
 public:
  struct Parts {
    const os::ProcFs& proc;
    const os::CgroupFs& cgroups;
    SocketOwners& owners;
    SocketCounters& sockets;
    CounterSink& sink;
    Clock clock;
    UnixSource unix_sockets;  // empty: the kernel's
    pid_t self = 0;           // Assay's own process
  };
  explicit OtherProcesses(Parts parts);
  const char* name() const override { return "other processes"; }
  void poll(const LiveTasks& tasks) override;

 private:
  struct Usage {
    int64_t cpu_ns = 0;
    std::optional<uint64_t> disk_bytes;  // absent: may not be read
    void add(const Usage& more);
  };
  struct Process {
    os::ProcStat stat;  // as last seen
    int64_t cpu_before_ns = 0;
    int64_t unseen_children_ns = 0;
    int64_t cpu_at_last_io_ns = -1;
    std::optional<uint64_t> io_before, io_now;
    model::Relation relation = model::Relation::unknown;
    std::string service;
    uint64_t scan = 0;  // the last that saw it

    int64_t cpu_ns() const { return stat.utime_ns + stat.stime_ns; }
    Usage usage() const;
  };
  struct User {  // processes of one name, service and relation
    Usage usage;
    size_t processes = 0;
    pid_t pid = 0;  // of the one that used most
    int64_t most_ns = -1;
  };
  using UserKey = std::tuple<std::string, std::string, model::Relation>;
  using Users = std::map<UserKey, User>;

  void read_processes(const LiveTasks& tasks);
  void see(const os::ProcStat& stat);
  void read_io(Process& process);
  bool is_assay(const os::ProcStat& stat) const;
  Process* living_ancestor(const Process& process);
  void take_leave_of_the_gone();
  void judge(const LiveTasks& tasks, int64_t window_ns);
  void judge(Process& process, const SocketPeers& peers, const std::set<pid_t>& target);
  SocketPeers find_peers(const LiveTasks& tasks);
  void add_to(Users& users, const Process& process) const;
  void write_facts(int64_t window_ns);

  Parts parts_;
  std::string own_exe_;
  TimeNs begin_ns_ = 0;
  uint64_t scan_ = 0;
  std::set<std::pair<pid_t, uint64_t>> targets_;  // ever: pid and start
  std::set<pid_t> parents_of_target_;
  std::unordered_map<pid_t, Process> alive_;
  Users ended_;
  size_t most_listed_ = 0;
};

}  // namespace assay::capture
