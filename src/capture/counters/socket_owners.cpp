#include "capture/counters/socket_owners.h"

#include <cerrno>

#include <fmt/format.h>
#include <unistd.h>

#include "os/machine/inet_diag.h"

namespace assay::capture {

void SocketOwners::poll(const LiveTasks& tasks) {
  for (const LiveProcess& process : tasks.processes) {
    inodes_[process.id] = socket_inodes(process.pid);
  }
  collect();
}

void SocketOwners::note_new(const LiveTasks& tasks) {
  bool changed = false;
  for (const LiveProcess& process : tasks.processes) {
    auto [entry, is_new] = inodes_.try_emplace(process.id);
    if (!is_new) continue;
    entry->second = socket_inodes(process.pid);
    changed = true;
  }
  if (changed) collect();
}

void SocketOwners::forget_the_gone(const LiveTasks& tasks) {
  std::unordered_set<model::ProcessId> alive;
  for (const LiveProcess& process : tasks.processes) alive.insert(process.id);
  auto gone = [&](const auto& entry) { return !alive.contains(entry.first); };
  if (std::erase_if(inodes_, gone) > 0) collect();
}

void SocketOwners::collect() {
  owned_.clear();
  for (const auto& [id, inodes] : inodes_) owned_.insert(inodes.begin(), inodes.end());
}

std::vector<uint64_t> SocketOwners::socket_inodes(pid_t pid) {
  std::vector<uint64_t> inodes;
  std::vector<int> numbers = proc_.fds(pid);
  if (numbers.empty()) {
    std::string folder = fmt::format("{}/{}/fd", proc_.root(), pid);
    if (::access(folder.c_str(), R_OK) != 0 && errno == EACCES) refused_ = true;
  }
  if (numbers.size() > kMaxFiles) numbers.resize(kMaxFiles);
  for (int number : numbers) {
    auto link = proc_.fd_link(pid, number);
    if (!link) continue;
    if (auto inode = os::socket_inode(*link)) inodes.push_back(*inode);
  }
  return inodes;
}

}  // namespace assay::capture
