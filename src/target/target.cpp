#include "target/target.h"

#include <algorithm>
#include <functional>
#include <set>

#include <unistd.h>

#include "os/machine/users.h"
#include "target/describe.h"
#include "target/match.h"
#include "target/process_table.h"
#include "target/roles.h"
#include "target/servers.h"

namespace assay::target {
namespace {

constexpr size_t kMostSuggestions = 8;

class Resolver {
 public:
  Resolver(const TargetSpec& spec, const os::ProcFs& proc, const Surroundings& surroundings)
      : spec_(spec), proc_(proc), surroundings_(surroundings), table_(ProcessTable::read(proc)) {
    for (pid_t pid : table_.ancestors(surroundings.self)) launchers_.insert(pid);
    never_.insert(surroundings.self);
    for (pid_t pid : surroundings.excluded) {
      never_.insert(pid);
      for (pid_t child : table_.descendants(pid)) never_.insert(child);
    }
  }

  Result<ResolvedTarget> run() {
    auto roots = find_roots();
    if (!roots) return std::unexpected(roots.error());
    return describe_processes(*roots);
  }

 private:
  Result<std::vector<pid_t>> find_roots() {
    int kinds = !spec_.pids.empty() + !spec_.name.empty() + !spec_.exe.empty() + (spec_.port != 0) +
                !spec_.cgroup.empty();
    if (kinds != 1) {
      return fail_with_remedy(
          kinds == 0 ? "no target was given" : "more than one kind of target was given",
          "give one of --pid N, --name NAME, --exe PATH, --port N, --cgroup PATH "
          "or -- COMMAND");
    }
    if (!spec_.pids.empty()) return by_pid();
    if (!spec_.name.empty()) return by_name();
    if (!spec_.exe.empty()) return by_exe();
    if (spec_.port != 0) return by_port();
    return by_cgroup();
  }

  Result<std::vector<pid_t>> by_pid() {
    std::vector<pid_t> pids;
    for (pid_t pid : spec_.pids) {
      if (auto checked = check_pid(pid); !checked) return std::unexpected(checked.error());
      if (std::ranges::find(pids, pid) == pids.end()) pids.push_back(pid);
    }
    return pids;
  }

  Result<void> check_pid(pid_t pid) {
    if (pid == surroundings_.self) return fail("process {} is Assay itself", pid);
    auto status = pid > 0 ? proc_.status(pid) : fail("there is no process {}", pid);
    if (!status)
      return fail_with_remedy(fmt::format("there is no process {}", pid), near_pids(), ESRCH);
    if (status->tgid != pid) {
      return fail_with_remedy(fmt::format("{} is a thread of process {}", pid, status->tgid),
                              fmt::format("{} --pid {}", surroundings_.command, status->tgid));
    }
    const ProcessEntry* entry = table_.find(pid);
    if (entry && (entry->state == 'Z' || entry->state == 'X')) {
      return std::unexpected(Error{
          fmt::format("process {} ({}) has ended and waits for its parent, process {}, to notice",
                      pid, printable(entry->comm), entry->parent),
          "", ESRCH});
    }
    if (entry && entry->exe_forbidden) {
      return fail_with_remedy(
          fmt::format("process {} ({}) belongs to {} and may not be looked into", pid,
                      printable(entry->comm), os::user_name(status->uid)),
          sudo(describe(spec_)), EACCES);
    }
    if (entry && !entry->has_program()) {
      return fail("process {} ({}) is a thread of the kernel, not a server", pid,
                  printable(entry->comm));
    }
    return {};
  }

  std::string near_pids() const {
    return "see what runs with: ps -e, or name the server with --name or --port";
  }

  std::string sudo(const std::string& target) const {
    return fmt::format("sudo {} {}", surroundings_.command, target);
  }

  bool may_pick(pid_t pid) const {
    const ProcessEntry* entry = table_.find(pid);
    return entry && !never_.contains(pid) && !launchers_.contains(pid) && !is_shell(*entry) &&
           entry->has_program();
  }

  std::vector<pid_t> pickable(const std::vector<pid_t>& pids) const {
    std::vector<pid_t> kept;
    std::ranges::copy_if(pids, std::back_inserter(kept), [&](pid_t pid) { return may_pick(pid); });
    return kept;
  }

  Result<std::vector<pid_t>> by_name() {
    std::vector<pid_t> matched = match_name(table_, spec_.name);
    std::vector<pid_t> kept = pickable(matched);
    if (kept.empty()) return std::unexpected(no_such_name(matched));
    return one_server(kept, {});
  }

  Error no_such_name(const std::vector<pid_t>& left_out) const {
    if (!left_out.empty()) return only_left_out(left_out);
    std::set<std::string> similar;
    for (const ProcessEntry& entry : table_.all()) {
      if (!may_pick(entry.pid)) continue;
      std::string program = entry.exe.empty() ? entry.comm : program_name(entry.exe);
      if (is_similar(spec_.name, program)) similar.insert(program);
      if (is_similar(spec_.name, entry.comm)) similar.insert(entry.comm);
    }
    Error error{fmt::format("no process is named {}", printable(spec_.name)), "", ESRCH};
    if (similar.empty()) {
      error.remedy = "see the names with: ps -e -o pid,comm, or use --port with the server's port";
      return error;
    }
    std::vector<std::string> names;
    for (const std::string& name : similar) {
      if (names.size() < kMostSuggestions) names.push_back(printable(name));
    }
    error.what += fmt::format("; similar names run here: {}", fmt::join(names, ", "));
    error.remedy = fmt::format("{} --name {}", surroundings_.command, shell_word(*similar.begin()));
    return error;
  }

  Error only_left_out(const std::vector<pid_t>& pids) const {
    return Error{fmt::format("{} matches only shells, Assay itself or what started it:{}",
                             describe(spec_), candidate_lines(table_, proc_, pids)),
                 fmt::format("{} --pid {}", surroundings_.command, pids.front()), 0};
  }

  Result<std::vector<pid_t>> by_exe() {
    std::vector<pid_t> matched = match_exe(table_, proc_, spec_.exe);
    std::vector<pid_t> kept = pickable(matched);
    if (!kept.empty()) return one_server(kept, {});
    if (!matched.empty()) return std::unexpected(only_left_out(matched));
    Error error{fmt::format("no process runs {}", printable(spec_.exe)), "", ESRCH};
    std::vector<pid_t> same_name = pickable(match_name(table_, program_name(spec_.exe)));
    auto forbidden = std::ranges::count_if(table_.all(), &ProcessEntry::exe_forbidden);
    if (!same_name.empty()) {
      error.what += "; of the same name:" + candidate_lines(table_, proc_, same_name);
      error.remedy = table_.find(same_name.front())->exe_forbidden
                         ? sudo(describe(spec_))
                         : fmt::format("{} --pid {}", surroundings_.command, same_name.front());
    } else if (forbidden > 0 && ::geteuid() != 0) {
      error.what +=
          fmt::format(", as far as may be seen: {} processes belong to other users", forbidden);
      error.remedy = sudo(describe(spec_));
    } else {
      error.remedy =
          fmt::format("{} --name {}", surroundings_.command, shell_word(program_name(spec_.exe)));
    }
    return std::unexpected(error);
  }

  Result<std::vector<pid_t>> by_port() {
    if (spec_.port < 1 || spec_.port > 65535) {
      return fail("{} is not a port: ports are 1 to 65535", spec_.port);
    }
    PortMatch match = match_port(table_, proc_, static_cast<uint16_t>(spec_.port));
    std::vector<pid_t> matched;
    for (const PortHolder& holder : match.holders) matched.push_back(holder.pid);
    std::vector<pid_t> kept = pickable(matched);
    // A service manager keeps the sockets of the services it starts on demand.
    auto is_manager = [&](pid_t pid) {
      return starts_unrelated(*table_.find(pid)) && is_init(pid);
    };
    if (std::ranges::any_of(kept, std::not_fn(is_manager))) std::erase_if(kept, is_manager);
    if (!kept.empty() && std::ranges::all_of(kept, is_manager)) {
      return fail_with_remedy(
          fmt::format("port {} is held by {} for a service that has not been started yet",
                      spec_.port, printable(table_.find(kept.front())->comm)),
          "send it one request, then try again");
    }
    if (!kept.empty()) return one_server(kept, match.holders);
    if (!matched.empty()) return std::unexpected(only_left_out(matched));
    return std::unexpected(nobody_listens(match));
  }

  bool is_init(pid_t pid) const {
    std::string program = program_name(table_.find(pid)->exe);
    return program == "systemd" || program == "init";
  }

  Error nobody_listens(const PortMatch& match) const {
    if (match.listening) {
      Error error{
          fmt::format("port {} is listened on by a process of {} that may not be looked into",
                      spec_.port, os::user_name(match.listener_uid)),
          sudo(describe(spec_)), EACCES};
      if (::geteuid() == 0) {
        error.what = fmt::format(
            "port {} is listened on by a process that is not visible from here", spec_.port);
        error.remedy = "run Assay outside this container, or in the one where the server runs";
      }
      return error;
    }
    Error error{fmt::format("nothing listens on TCP port {}", spec_.port), "", ESRCH};
    std::vector<std::string> ports;
    for (const auto& [port, pid] : match.ports) {
      const ProcessEntry* entry = table_.find(pid);
      if (!entry || never_.contains(pid) || ports.size() >= kMostSuggestions) continue;
      ports.push_back(fmt::format("{} ({}, pid {})", port, printable(entry->comm), pid));
    }
    if (!ports.empty())
      error.what += fmt::format("; ports listened on: {}", fmt::join(ports, ", "));
    error.remedy = "see who listens with: ss -ltnp";
    return error;
  }

  Result<std::vector<pid_t>> by_cgroup() {
    CgroupMatch match = match_cgroup(table_, proc_, spec_.cgroup);
    std::vector<pid_t> kept = pickable(match.pids);
    if (!kept.empty()) return kept;
    if (!match.pids.empty()) return std::unexpected(only_left_out(match.pids));
    Error error{fmt::format("no process is in cgroup {}", printable(match.path)), "", ESRCH};
    std::vector<std::string> known;
    for (const std::string& path : match.known) {
      if (known.size() < kMostSuggestions &&
          is_similar(program_name(match.path), program_name(path))) {
        known.push_back(printable(path));
      }
    }
    if (!known.empty()) error.what += fmt::format("; similar ones: {}", fmt::join(known, ", "));
    error.remedy = "see the cgroups with: systemd-cgls, or cat /proc/PID/cgroup of the server";
    return std::unexpected(error);
  }

  Result<std::vector<pid_t>> one_server(const std::vector<pid_t>& pids,
                                        const std::vector<PortHolder>& holders) const {
    auto servers = group_servers(table_, pids, holders);
    if (servers.empty())
      return std::vector<pid_t>();  // inconsistent parent links: no process is a root
    if (servers.size() == 1) return servers.front();
    std::vector<pid_t> tops;
    for (const auto& server : servers) tops.push_back(server.front());
    std::string others;
    for (size_t index = 1; index < std::min(tops.size(), kMostSuggestions); ++index) {
      others += fmt::format("{}--pid {}", index == 1 ? "   or: " : ", ", tops[index]);
    }
    return fail_with_remedy(
        fmt::format("{} matches {} servers that have nothing to do with each other:{}",
                    describe(spec_), servers.size(), candidate_lines(table_, proc_, tops)),
        fmt::format("{} --pid {}{}", surroundings_.command, tops.front(), others));
  }

  std::vector<pid_t> by_age(std::vector<pid_t> pids) const {
    std::ranges::sort(pids, {}, [&](pid_t pid) {
      const ProcessEntry* entry = table_.find(pid);
      return std::pair(entry ? entry->start_ticks : 0, pid);
    });
    return pids;
  }

  // The selected processes and, when requested, their descendants; the roots are those without a
  // parent among them.
  Result<ResolvedTarget> describe_processes(const std::vector<pid_t>& picked) {
    std::set<pid_t> all(picked.begin(), picked.end());
    for (pid_t pid : spec_.include_children ? picked : std::vector<pid_t>()) {
      for (pid_t child : table_.descendants(pid, never_)) {
        if (table_.find(child)->has_program()) all.insert(child);
      }
    }
    std::vector<pid_t> roots, below;
    for (pid_t pid : all) {
      auto inside = [&](pid_t ancestor) { return all.contains(ancestor); };
      (std::ranges::none_of(table_.ancestors(pid), inside) ? roots : below).push_back(pid);
    }
    ResolvedTarget target;
    for (pid_t pid : by_age(roots)) add(pid, target);
    target.root_count = target.processes.size();
    for (pid_t pid : by_age(below)) add(pid, target);
    if (target.root_count == 0) {
      return std::unexpected(
          Error{fmt::format("{} ended while it was looked up", describe(spec_)), "", ESRCH});
    }
    assign_roles(target);
    return target;
  }

  void add(pid_t pid, ResolvedTarget& target) const {
    const ProcessEntry* entry = table_.find(pid);
    auto status = proc_.status(pid);
    if (!entry || !status) return;
    ResolvedProcess process;
    process.pid = pid;
    process.parent = entry->parent;
    process.exe = entry->exe;
    process.exe_deleted = entry->exe_deleted;
    process.comm = entry->comm;
    process.uid = status->uid;
    process.start_ticks = entry->start_ticks;
    if (auto cmdline = proc_.cmdline(pid))
      process.cmdline = fmt::format("{}", fmt::join(*cmdline, " "));
    if (auto cgroup = proc_.read(fmt::format("{}/cgroup", pid)))
      process.cgroup = main_cgroup(*cgroup);
    for (pid_t tid : proc_.tids(pid)) {
      if (auto name = proc_.comm(pid, tid)) process.threads.push_back({tid, *name});
    }
    target.processes.push_back(std::move(process));
  }

  static void assign_roles(ResolvedTarget& target) {
    RoleBook book;
    std::vector<std::string> exes;
    for (size_t index = 0; index < target.root_count; ++index)
      exes.push_back(target.processes[index].exe);
    std::vector<std::string> roles = book.assign_roots(exes);
    for (size_t index = 0; index < target.processes.size(); ++index) {
      ResolvedProcess& process = target.processes[index];
      process.role = index < roles.size() ? roles[index] : book.assign(process.exe);
    }
  }

  const TargetSpec& spec_;
  const os::ProcFs& proc_;
  const Surroundings& surroundings_;
  ProcessTable table_;
  std::set<pid_t> launchers_;  // Assay's ancestors: a shell, sudo, a test harness
  std::set<pid_t> never_;      // Assay and the processes that the caller excludes
};

}  // namespace

std::vector<pid_t> ResolvedTarget::pids() const {
  std::vector<pid_t> all;
  for (const ResolvedProcess& process : processes) all.push_back(process.pid);
  return all;
}

Result<ResolvedTarget> resolve(const TargetSpec& spec, const os::ProcFs& proc,
                               const Surroundings& surroundings) {
  return Resolver(spec, proc, surroundings).run();
}

}  // namespace assay::target
