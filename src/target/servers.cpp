#include "target/servers.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "target/roles.h"

namespace assay::target {
namespace {

constexpr std::array<std::string_view, 13> kShells{"bash",    "sh",   "dash", "zsh",  "fish",
                                                   "busybox", "ash",  "ksh",  "mksh", "tcsh",
                                                   "csh",     "yash", "rbash"};
constexpr std::array<std::string_view, 21> kStarters{"systemd",
                                                     "init",
                                                     "sshd",
                                                     "tmux",
                                                     "tmux: server",
                                                     "screen",
                                                     "login",
                                                     "cron",
                                                     "crond",
                                                     "sudo",
                                                     "su",
                                                     "supervisord",
                                                     "runsvdir",
                                                     "runsv",
                                                     "tini",
                                                     "dumb-init",
                                                     "s6-supervise",
                                                     "s6-svscan",
                                                     "containerd-shim",
                                                     "containerd-shim-runc-v2",
                                                     "conmon"};

std::string program_of(const ProcessEntry& entry) {
  std::string name = entry.exe.empty() ? entry.comm : program_name(entry.exe);
  if (name.starts_with('-')) name.erase(0, 1);  // a login shell
  return name;
}

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Topmost matched ancestors, oldest first.
std::vector<pid_t> topmost(const ProcessTable& table, const std::vector<pid_t>& matched) {
  std::set<pid_t> all(matched.begin(), matched.end());
  std::vector<pid_t> tops;
  for (pid_t pid : all) {
    auto is_matched = [&](pid_t ancestor) { return all.contains(ancestor); };
    if (std::ranges::none_of(table.ancestors(pid), is_matched)) tops.push_back(pid);
  }
  std::ranges::sort(tops, {}, [&](pid_t pid) {
    const ProcessEntry* entry = table.find(pid);
    return std::pair(entry ? entry->start_ticks : 0, pid);
  });
  return tops;
}

std::string_view namespace_of(const std::vector<PortHolder>& holders, pid_t pid) {
  auto found = std::ranges::find(holders, pid, &PortHolder::pid);
  return found == holders.end() ? std::string_view() : std::string_view(found->net_namespace);
}

}  // namespace

bool is_shell(const ProcessEntry& entry) {
  return is_one_of(kShells, program_of(entry));
}

bool starts_unrelated(const ProcessEntry& entry) {
  return entry.pid <= 1 || is_shell(entry) || is_one_of(kStarters, program_of(entry));
}

std::vector<std::vector<pid_t>> group_servers(const ProcessTable& table,
                                              const std::vector<pid_t>& matched,
                                              const std::vector<PortHolder>& holders) {
  auto share_the_port = [&](pid_t a, pid_t b) {
    const ProcessEntry* one = table.find(a);
    const ProcessEntry* other = table.find(b);
    if (holders.empty() || !one || !other) return false;
    bool same_exe = !one->exe.empty() && one->exe == other->exe;
    const ProcessEntry* parent = one->parent == other->parent ? table.find(one->parent) : nullptr;
    bool same_supervisor = parent && !starts_unrelated(*parent);
    return (same_exe || same_supervisor) && namespace_of(holders, a) == namespace_of(holders, b);
  };
  std::vector<std::vector<pid_t>> servers;
  for (pid_t top : topmost(table, matched)) {
    auto mine = std::ranges::find_if(servers, [&](const std::vector<pid_t>& server) {
      return share_the_port(server.front(), top);
    });
    if (mine == servers.end()) {
      servers.push_back({top});
    } else {
      mine->push_back(top);
    }
  }
  return servers;
}

}  // namespace assay::target
