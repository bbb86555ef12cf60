#include "capture/counters/socket_owners.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <unistd.h>

#include "os/inet_diag.h"

namespace assay::capture {

void SocketOwners::refresh(const std::vector<LiveProcess>& processes) {
  bool changed = false;
  std::unordered_set<model::ProcessId> alive;
  for (const LiveProcess& process : processes) {
    alive.insert(process.id);
    Files& files = processes_[process.id];
    if (clock_() < files.next_scan_ns) continue;
    scan(process.pid, files);
    changed = true;
  }
  changed |= std::erase_if(processes_,
                           [&](const auto& entry) { return !alive.contains(entry.first); }) > 0;
  if (!changed) return;
  owned_.clear();
  for (const auto& [id, files] : processes_)
    owned_.insert(files.inodes.begin(), files.inodes.end());
}

void SocketOwners::scan(pid_t pid, Files& files) {
  TimeNs begin = clock_();
  files.inodes.clear();
  std::vector<int> numbers = proc_.fds(pid);
  if (numbers.empty()) {
    std::string folder = fmt::format("{}/{}/fd", proc_.root(), pid);
    if (::access(folder.c_str(), R_OK) != 0 && errno == EACCES) refused_ = true;
  }
  if (numbers.size() > kMaxFiles) numbers.resize(kMaxFiles);
  for (int number : numbers) {
    auto link = proc_.fd_link(pid, number);
    if (!link) continue;
    if (auto inode = os::socket_inode(*link)) files.inodes.push_back(*inode);
  }
  TimeNs end = clock_();
  files.next_scan_ns = end + std::max(kIntervalNs, (end - begin) * kRestFactor);
}

}  // namespace assay::capture
