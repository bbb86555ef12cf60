#include "target/match.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <unordered_map>

#include <sys/stat.h>

#include "os/machine/inet_diag.h"
#include "target/roles.h"

namespace assay::target {
namespace {

namespace fs = std::filesystem;

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileIdentity{info.st_dev, info.st_ino};
}

template <class Each>
void for_each_line(std::string_view text, Each each) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    each(line);
  }
}

// The processes that hold each of these socket inodes open.
std::unordered_map<uint64_t, std::vector<pid_t>> holders_of(const ProcessTable& table,
                                                            const os::ProcFs& proc,
                                                            const std::set<uint64_t>& inodes) {
  std::unordered_map<uint64_t, std::vector<pid_t>> holders;
  if (inodes.empty()) return holders;
  for (const ProcessEntry& entry : table.all()) {
    std::set<uint64_t> of_this_process;
    for (int fd : proc.fds(entry.pid)) {
      auto link = proc.fd_link(entry.pid, fd);
      if (!link) continue;
      auto inode = os::socket_inode(*link);
      if (inode && inodes.contains(*inode) && of_this_process.insert(*inode).second) {
        holders[*inode].push_back(entry.pid);
      }
    }
  }
  return holders;
}

struct Listener {
  uint16_t port = 0;
  uint64_t inode = 0;
  uid_t uid = 0;
  std::string net_namespace;  // empty for Assay's own
};

// Listening sockets of one process's network namespace; none where they may not be read. pid 0:
// ours.
void add_listeners(const os::ProcFs& proc, pid_t pid, const std::string& net_namespace,
                   std::vector<Listener>& listeners) {
  auto sockets = os::read_net_tcp(pid, proc.root());
  if (!sockets) return;
  for (const os::TcpSocket& socket : *sockets) {
    if (socket.state != os::TcpState::listen) continue;
    listeners.push_back({socket.local.port, socket.inode, socket.uid, net_namespace});
  }
}

void add_foreign_listeners(const ProcessTable& table, const os::ProcFs& proc,
                           std::vector<Listener>& listeners) {
  std::set<std::string> seen{"", os::network_namespace(0, proc.root())};
  for (const ProcessEntry& entry : table.all()) {
    std::string space = os::network_namespace(entry.pid, proc.root());
    if (seen.insert(space).second) add_listeners(proc, entry.pid, space, listeners);
  }
}

void add_unless_known(std::vector<PortHolder>& holders, const PortHolder& holder) {
  auto same = [&](const PortHolder& other) { return other.pid == holder.pid; };
  if (std::ranges::none_of(holders, same)) holders.push_back(holder);
}

// One "id:controllers:path" line of /proc/PID/cgroup.
struct CgroupLine {
  std::string_view controllers;  // empty for v2
  std::string_view path;
};

std::optional<CgroupLine> parse_cgroup_line(std::string_view line) {
  size_t first = line.find(':');
  if (first == line.npos) return std::nullopt;
  size_t second = line.find(':', first + 1);
  if (second == line.npos || second + 1 >= line.size() || line[second + 1] != '/')
    return std::nullopt;
  return CgroupLine{line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

bool has_controller(std::string_view controllers, std::string_view wanted) {
  for (;;) {
    size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == wanted) return true;
    if (comma == controllers.npos) return false;
    controllers.remove_prefix(comma + 1);
  }
}

struct WantedCgroup {
  std::string path;        // "/system.slice/x.service"
  std::string controller;  // "": any hierarchy; "-": v2 only; else one of v1's
};

// "/sys/fs/cgroup/memory/a/b" names hierarchy memory and path /a/b; the longest mount point wins.
WantedCgroup parse_wanted_cgroup(const os::ProcFs& proc, const std::string& path) {
  WantedCgroup wanted{"/" + path.substr(std::min(path.find_first_not_of('/'), path.size())), ""};
  while (wanted.path.size() > 1 && wanted.path.ends_with('/')) wanted.path.pop_back();
  const std::string full = wanted.path;
  size_t longest = 0;
  auto mounts = proc.read("self/mountinfo");
  for_each_line(mounts ? std::string_view(*mounts) : "", [&](std::string_view line) {
    // 40 31 0:37 ROOT MOUNTPOINT options… - TYPE SOURCE SUPEROPTIONS
    size_t separator = line.find(" - ");
    if (separator == line.npos) return;
    std::vector<std::string_view> before, after;
    auto split = [](std::string_view text, std::vector<std::string_view>& words) {
      while (!text.empty()) {
        words.push_back(text.substr(0, text.find(' ')));
        text.remove_prefix(std::min(words.back().size() + 1, text.size()));
      }
    };
    split(line.substr(0, separator), before);
    split(line.substr(separator + 3), after);
    if (before.size() < 5 || after.size() < 3 || !after[0].starts_with("cgroup")) return;
    std::string_view root = before[3], mount = before[4];
    bool below = full == mount || (full.starts_with(mount) && full[mount.size()] == '/');
    if (!below || mount.size() <= longest) return;
    longest = mount.size();
    wanted.path = (root == "/" ? "" : std::string(root)) + full.substr(mount.size());
    if (wanted.path.empty()) wanted.path = "/";
    std::string_view options = after[2];
    wanted.controller = after[0] == "cgroup2" ? "-" : options.substr(options.rfind(',') + 1);
  });
  return wanted;
}

bool is_in(const CgroupLine& line, const WantedCgroup& wanted) {
  if (wanted.controller == "-" && !line.controllers.empty()) return false;
  if (wanted.controller.size() > 1 && !has_controller(line.controllers, wanted.controller)) {
    return false;
  }
  if (wanted.path == "/" || line.path == wanted.path) return true;
  return line.path.starts_with(wanted.path) && line.path[wanted.path.size()] == '/';
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t column = 0; column <= b.size(); ++column) row[column] = column;
  for (size_t line = 1; line <= a.size(); ++line) {
    size_t diagonal = std::exchange(row[0], line);
    for (size_t column = 1; column <= b.size(); ++column) {
      size_t replaced = diagonal + (a[line - 1] != b[column - 1]);
      diagonal = row[column];
      row[column] = std::min({replaced, row[column] + 1, row[column - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<pid_t> match_name(const ProcessTable& table, const std::string& name) {
  std::vector<pid_t> pids;
  for (const ProcessEntry& entry : table.all()) {
    if (!entry.has_program()) continue;
    if (entry.comm == name || program_name(entry.exe) == name) pids.push_back(entry.pid);
  }
  return pids;
}

std::vector<pid_t> match_exe(const ProcessTable& table, const os::ProcFs& proc,
                             const std::string& path) {
  std::error_code ignored;
  std::string written = fs::absolute(path, ignored).lexically_normal().string();
  std::string real = fs::weakly_canonical(path, ignored).string();
  auto wanted = identity_of(path);
  std::vector<pid_t> pids;
  for (const ProcessEntry& entry : table.all()) {
    if (entry.exe.empty()) continue;
    bool same_path = entry.exe == written || entry.exe == real;
    bool same_file =
        wanted && identity_of(fmt::format("{}/{}/exe", proc.root(), entry.pid)) == wanted;
    if (same_path || same_file) pids.push_back(entry.pid);
  }
  return pids;
}

PortMatch match_port(const ProcessTable& table, const os::ProcFs& proc, uint16_t port) {
  std::vector<Listener> listeners;
  add_listeners(proc, 0, "", listeners);
  if (std::ranges::find(listeners, port, &Listener::port) == listeners.end()) {
    add_foreign_listeners(table, proc, listeners);
  }
  std::set<uint64_t> inodes;
  for (const Listener& listener : listeners) inodes.insert(listener.inode);
  auto holders = holders_of(table, proc, inodes);

  PortMatch match;
  for (const Listener& listener : listeners) {
    const std::vector<pid_t>& pids = holders[listener.inode];
    if (!pids.empty()) match.ports.emplace(listener.port, pids.front());
    if (listener.port != port) continue;
    match.listening = true;
    match.listener_uid = listener.uid;
    for (pid_t pid : pids) add_unless_known(match.holders, {pid, listener.net_namespace});
  }
  return match;
}

CgroupMatch match_cgroup(const ProcessTable& table, const os::ProcFs& proc,
                         const std::string& path) {
  WantedCgroup wanted = parse_wanted_cgroup(proc, path);
  CgroupMatch match;
  match.path = wanted.path;
  std::set<std::string> known;
  for (const ProcessEntry& entry : table.all()) {
    if (!entry.has_program()) continue;
    auto text = proc.read(fmt::format("{}/cgroup", entry.pid));
    if (!text) continue;
    bool inside = false;
    for_each_line(*text, [&](std::string_view line) {
      auto cgroup = parse_cgroup_line(line);
      if (!cgroup) return;
      if (cgroup->path != "/") known.emplace(cgroup->path);
      inside = inside || is_in(*cgroup, wanted);
    });
    if (inside) match.pids.push_back(entry.pid);
  }
  match.known.assign(known.begin(), known.end());
  return match;
}

std::string main_cgroup(std::string_view text) {
  std::string_view best = "/";
  int best_rank = 0;
  for_each_line(text, [&](std::string_view line) {
    auto cgroup = parse_cgroup_line(line);
    if (!cgroup || cgroup->path == "/") return;
    int rank = cgroup->controllers.empty() ? 3 : has_controller(cgroup->controllers, "cpu") ? 2 : 1;
    if (rank <= best_rank) return;
    best_rank = rank;
    best = cgroup->path;
  });
  return std::string(best);
}

bool is_similar(std::string_view name, std::string_view other) {
  auto lower = [](std::string_view text) {
    std::string result(text);
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
  };
  std::string a = lower(name), b = lower(other);
  if (a.size() < 2 || b.size() < 2 || a.size() > 256 || b.size() > 256) return a == b;
  if (a.find(b) != a.npos || b.find(a) != b.npos) return true;
  return edit_distance(a, b) <= (std::min(a.size(), b.size()) <= 3 ? 1 : 2);
}

}  // namespace assay::target
