#include "capture/counters/other_processes.h"

#include <algorithm>

#include <fmt/format.h>

#include "os/text_fields.h"

namespace assay::capture {
namespace {

using model::OtherUser;
using model::OtherUsers;
using model::Relation;

constexpr size_t kListed = 5;           // of CPU, and as many of disk
constexpr size_t kMaxJudged = 64;       // processes whose open files are read in one scan
constexpr size_t kMaxFiles = 20'000;    // of one of them
constexpr size_t kMaxNamespaces = 16;   // of the target
constexpr size_t kMaxEndedUsers = 256;  // the others are one, which is not listed
constexpr const char* kManyThatEnded = "(many that ended)";  // longer than a process can be named
constexpr double kNotableCpus = 0.002;
constexpr double kNotableDisk = 1e5;  // bytes a second

double per_second(double amount, int64_t window_ns) {
  return window_ns > 0 ? amount * 1e9 / static_cast<double>(window_ns) : 0;
}

bool is_notable(int64_t cpu_ns, uint64_t disk_bytes, int64_t window_ns) {
  return per_second(static_cast<double>(cpu_ns) / 1e9, window_ns) >= kNotableCpus ||
         per_second(static_cast<double>(disk_bytes), window_ns) >= kNotableDisk;
}

// Bytes that reached a device, or will; a file that was deleted before it was written did not.
std::optional<uint64_t> disk_bytes(const std::string& io) {
  auto read = os::parse_u64(os::field_after(io, "read_bytes"));
  auto written = os::parse_u64(os::field_after(io, "write_bytes"));
  auto cancelled = os::parse_u64(os::field_after(io, "cancelled_write_bytes"));
  if (!read || !written) return {};
  return *read + *written - std::min(*written, cancelled.value_or(0));
}

}  // namespace

OtherProcesses::OtherProcesses(Parts parts) : parts_(std::move(parts)) {
  if (!parts_.unix_sockets) {
    parts_.unix_sockets = [this](pid_t pid) {
      return os::read_unix_sockets(pid, parts_.proc.root());
    };
  }
  own_exe_ = parts_.proc.exe(parts_.self).value_or("");
}

void OtherProcesses::Usage::add(const Usage& more) {
  cpu_ns += more.cpu_ns;
  if (more.disk_bytes) disk_bytes = disk_bytes.value_or(0) + *more.disk_bytes;
}

OtherProcesses::Usage OtherProcesses::Process::usage() const {
  Usage usage{
      std::max<int64_t>(0, cpu_ns() - cpu_before_ns) + std::max<int64_t>(0, unseen_children_ns),
      {}};
  if (io_before && io_now) usage.disk_bytes = *io_now > *io_before ? *io_now - *io_before : 0;
  return usage;
}

void OtherProcesses::poll(const LiveTasks& tasks) {
  TimeNs now = parts_.clock();
  if (scan_++ == 0) begin_ns_ = now;
  read_processes(tasks);
  take_leave_of_the_gone();
  int64_t window_ns = now - begin_ns_;
  // The first scan has nothing to compare with: what a process used is known from the second on.
  if (window_ns <= 0) return;
  judge(tasks, window_ns);
  write_facts(window_ns);
}

// The load command is a child of Assay as well; readers run Assay's own program.
bool OtherProcesses::is_assay(const os::ProcStat& stat) const {
  if (stat.pid == parts_.self) return true;
  return stat.parent == parts_.self && !own_exe_.empty() &&
         parts_.proc.exe(stat.pid).value_or("") == own_exe_;
}

void OtherProcesses::read_processes(const LiveTasks& tasks) {
  std::set<pid_t> target;
  for (const LiveProcess& process : tasks.processes) target.insert(process.pid);
  parents_of_target_.clear();
  for (pid_t pid : parts_.proc.pids()) {
    auto stat = parts_.proc.stat(pid);
    if (!stat) continue;
    std::pair life{pid, stat->start_ticks};
    if (target.contains(pid)) {
      targets_.insert(life);
      alive_.erase(pid);  // it was seen before it was known as the target's
      if (stat->parent > 1) parents_of_target_.insert(stat->parent);
    } else if (!targets_.contains(life) && !is_assay(*stat)) {
      see(*stat);
    }
  }
}

void OtherProcesses::see(const os::ProcStat& stat) {
  auto found = alive_.find(stat.pid);
  if (found != alive_.end() && found->second.stat.start_ticks != stat.start_ticks) {
    add_to(ended_, found->second);  // its number was given to another
    alive_.erase(found);
    found = alive_.end();
  }
  bool is_new = found == alive_.end();
  Process& process = is_new ? alive_[stat.pid] : found->second;
  if (!is_new) {
    process.unseen_children_ns += std::max<int64_t>(0, stat.children_ns - process.stat.children_ns);
  } else if (scan_ == 1) {
    process.cpu_before_ns = stat.utime_ns + stat.stime_ns;
  } else {
    process.unseen_children_ns = stat.children_ns;
    process.io_before = 0;
  }
  process.stat = stat;
  process.scan = scan_;
  read_io(process);
}

// Who moves bytes uses the CPU for it, so the file is read again only when CPU time has grown.
void OtherProcesses::read_io(Process& process) {
  if (process.stat.of_kernel || process.cpu_at_last_io_ns == process.cpu_ns()) return;
  process.cpu_at_last_io_ns = process.cpu_ns();
  auto text = parts_.proc.read(fmt::format("{}/io", process.stat.pid));
  auto bytes = text ? disk_bytes(*text) : std::nullopt;
  if (!bytes) return;
  process.io_now = bytes;
  if (!process.io_before) process.io_before = bytes;
}

// Several generations may end between two scans: then the nearest who lives learned of them all.
OtherProcesses::Process* OtherProcesses::living_ancestor(const Process& process) {
  constexpr int kMostGenerations = 64;
  pid_t parent = process.stat.parent;
  for (int i = 0; i < kMostGenerations; ++i) {
    auto found = alive_.find(parent);
    if (found == alive_.end()) return nullptr;
    if (found->second.scan == scan_) return &found->second;
    parent = found->second.stat.parent;
  }
  return nullptr;
}

// What a parent learns of a child that ended, and scans had seen of that child, is not counted
// twice. It may learn of it after this scan has looked at it, so the difference may be negative for
// a while.
void OtherProcesses::take_leave_of_the_gone() {
  std::vector<pid_t> gone;
  for (auto& [pid, process] : alive_) {
    if (process.scan == scan_) continue;
    gone.push_back(pid);
    if (Process* ancestor = living_ancestor(process))
      ancestor->unseen_children_ns -= process.cpu_ns() + process.stat.children_ns;
  }
  for (pid_t pid : gone) {
    add_to(ended_, alive_[pid]);
    alive_.erase(pid);
  }
}

SocketPeers OtherProcesses::find_peers(const LiveTasks& tasks) {
  SocketPeers peers;
  std::set<std::string> seen;
  std::vector<std::vector<os::TcpSocket>> tables;
  auto add_space = [&](pid_t pid) {
    std::string space = os::network_namespace(pid, parts_.proc.root());
    if (seen.size() > kMaxNamespaces || !seen.insert(space).second) return;
    if (auto sockets = parts_.sockets.sockets_beside(pid)) tables.push_back(std::move(*sockets));
    if (auto sockets = parts_.unix_sockets(pid)) peers.add_unix(*sockets, parts_.owners);
  };
  for (const LiveProcess& process : tasks.processes) add_space(process.pid);
  add_space(0);  // a client outside the target's container
  for (const auto& sockets : tables) peers.add_target_sockets(sockets, parts_.owners);
  for (const auto& sockets : tables) peers.add_other_ends(sockets, parts_.owners);
  return peers;
}

void OtherProcesses::judge(const LiveTasks& tasks, int64_t window_ns) {
  std::vector<std::pair<Usage, Process*>> asked;
  for (auto& [pid, process] : alive_) {
    Usage usage = process.usage();
    bool notable = is_notable(usage.cpu_ns, usage.disk_bytes.value_or(0), window_ns);
    if (notable && process.relation != Relation::load_generator)
      asked.emplace_back(usage, &process);
  }
  if (asked.empty()) return;
  std::ranges::sort(asked, std::greater(), [](const auto& one) {
    return std::pair(one.first.cpu_ns, one.first.disk_bytes.value_or(0));
  });
  if (asked.size() > kMaxJudged) asked.resize(kMaxJudged);
  parts_.owners.note_new(tasks);
  SocketPeers peers = find_peers(tasks);
  std::set<pid_t> target;
  for (const LiveProcess& process : tasks.processes) target.insert(process.pid);
  for (auto& [usage, process] : asked) judge(*process, peers, target);
}

// Once told, a closer relation stays: connections come and go between scans.
void OtherProcesses::judge(Process& process, const SocketPeers& peers,
                           const std::set<pid_t>& target) {
  if (process.stat.of_kernel) {
    process.relation = Relation::kernel;
    return;
  }
  if (auto place = parts_.cgroups.find(process.stat.pid))
    process.service = os::service_name(place->name);
  Channels channels = read_channels(parts_.proc, process.stat.pid, kMaxFiles);
  Relation told =
      channels.refused || process.stat.state == 'Z' ? Relation::unknown : Relation::stranger;
  bool related =
      target.contains(process.stat.parent) || parents_of_target_.contains(process.stat.pid);
  for (const auto& [pipe, ends] : channels.pipes) {
    PipeEnds targets = parts_.owners.ends_of(pipe);
    related |= (ends.reads && targets.writes) || (ends.writes && targets.reads);
  }
  if (related) told = Relation::connected;
  for (uint64_t inode : channels.sockets) {
    if (auto relation = peers.relation_of(inode)) told = std::min(told, *relation);
  }
  process.relation = std::min(process.relation, told);
}

void OtherProcesses::add_to(Users& users, const Process& process) const {
  UserKey key{process.stat.comm, process.service, process.relation};
  if (&users == &ended_ && users.size() >= kMaxEndedUsers && !users.contains(key))
    key = {kManyThatEnded, "", process.relation};
  User& user = users[key];
  Usage usage = process.usage();
  user.usage.add(usage);
  ++user.processes;
  if (usage.cpu_ns > user.most_ns) {
    user.most_ns = usage.cpu_ns;
    user.pid = process.stat.pid;
  }
}

void OtherProcesses::write_facts(int64_t window_ns) {
  Users users = ended_;
  for (const auto& [pid, process] : alive_) add_to(users, process);
  OtherUsers all;
  all.cpus.emplace();
  for (const auto& [key, user] : users) {
    const auto& [name, service, relation] = key;
    double cpus = per_second(static_cast<double>(user.usage.cpu_ns) / 1e9, window_ns);
    (*all.cpus)[static_cast<size_t>(relation)] += cpus;
    if (name == kManyThatEnded) continue;
    if (!is_notable(user.usage.cpu_ns, user.usage.disk_bytes.value_or(0), window_ns)) continue;
    OtherUser listed{name, user.pid, user.processes, service, cpus, {}, relation};
    if (user.usage.disk_bytes) {
      listed.disk_bytes_per_s = per_second(static_cast<double>(*user.usage.disk_bytes), window_ns);
    }
    all.largest.push_back(std::move(listed));
  }
  model::keep_largest(all.largest, kListed);
  // Facts are replaced, never removed: places that are no longer taken are written empty.
  most_listed_ = std::max(most_listed_, all.largest.size());
  all.largest.resize(most_listed_);
  for (const model::Fact& fact : model::to_facts(all)) parts_.sink.add_fact(fact);
}

}  // namespace assay::capture
