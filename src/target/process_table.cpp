#include "target/process_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace assay::target {

ProcessTable ProcessTable::read(const os::ProcFs& proc) {
  constexpr std::string_view deleted = " (deleted)";
  ProcessTable table;
  for (pid_t pid : proc.pids()) {
    auto stat = proc.stat(pid);
    if (!stat) continue;
    ProcessEntry entry;
    entry.pid = pid;
    entry.parent = stat->parent;
    entry.comm = std::move(stat->comm);
    entry.state = stat->state;
    entry.start_ticks = stat->start_ticks;
    if (auto exe = proc.exe(pid)) {
      entry.exe_deleted = exe->ends_with(deleted);
      entry.exe = exe->substr(0, exe->size() - (entry.exe_deleted ? deleted.size() : 0));
    } else {
      entry.exe_forbidden = exe.error().code == EACCES || exe.error().code == EPERM;
    }
    table.entries_.push_back(std::move(entry));
  }
  return table;
}

const ProcessEntry* ProcessTable::find(pid_t pid) const {
  auto found = std::ranges::lower_bound(entries_, pid, {}, &ProcessEntry::pid);
  return found != entries_.end() && found->pid == pid ? &*found : nullptr;
}

std::vector<pid_t> ProcessTable::ancestors(pid_t pid) const {
  std::vector<pid_t> chain;
  for (const ProcessEntry* entry = find(pid); entry && entry->parent > 0;) {
    if (entry->parent == pid || std::ranges::find(chain, entry->parent) != chain.end()) break;
    chain.push_back(entry->parent);
    entry = find(entry->parent);
  }
  return chain;
}

std::vector<pid_t> ProcessTable::descendants(pid_t pid, const std::set<pid_t>& left_out) const {
  std::multimap<pid_t, pid_t> children;
  for (const ProcessEntry& entry : entries_) children.emplace(entry.parent, entry.pid);
  std::set<pid_t> seen(left_out);
  seen.insert(pid);
  std::vector<pid_t> found;
  std::vector<pid_t> open{pid};
  while (!open.empty()) {
    auto [begin, end] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = begin; child != end; ++child) {
      if (!seen.insert(child->second).second) continue;
      found.push_back(child->second);
      open.push_back(child->second);
    }
  }
  return found;
}

}  // namespace assay::target
