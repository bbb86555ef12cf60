#include "capture/counters/socket_owners.h"

#include <cerrno>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/device/accelerator.h"
#include "os/machine/inet_diag.h"
#include "os/text_fields.h"

namespace assay::capture {
namespace {

// "pipe:[123]"
std::optional<uint64_t> pipe_inode(std::string_view link) {
  constexpr std::string_view kBegin = "pipe:[";
  if (!link.starts_with(kBegin) || !link.ends_with(']')) return {};
  return os::parse_u64(link.substr(kBegin.size(), link.size() - kBegin.size() - 1));
}

}  // namespace

void SocketOwners::poll(const LiveTasks& tasks) {
  for (const LiveProcess& process : tasks.processes) {
    channels_[process.id] = channels_of(process.pid);
  }
  collect();
}

void SocketOwners::note_new(const LiveTasks& tasks) {
  bool changed = false;
  for (const LiveProcess& process : tasks.processes) {
    auto [entry, is_new] = channels_.try_emplace(process.id);
    if (!is_new) continue;
    entry->second = channels_of(process.pid);
    changed = true;
  }
  if (changed) collect();
}

void SocketOwners::forget_the_gone(const LiveTasks& tasks) {
  std::unordered_set<model::ProcessId> alive;
  for (const LiveProcess& process : tasks.processes) alive.insert(process.id);
  auto gone = [&](const auto& entry) { return !alive.contains(entry.first); };
  if (std::erase_if(channels_, gone) > 0) collect();
}

void SocketOwners::collect() {
  owned_.clear();
  pipes_.clear();
  accelerators_.clear();
  for (const auto& [id, channels] : channels_) {
    owned_.insert(channels.sockets.begin(), channels.sockets.end());
    accelerators_.insert(channels.accelerators.begin(), channels.accelerators.end());
    for (const auto& [inode, ends] : channels.pipes) {
      pipes_[inode].reads |= ends.reads;
      pipes_[inode].writes |= ends.writes;
    }
  }
}

Channels SocketOwners::channels_of(pid_t pid) {
  Channels channels = read_channels(proc_, pid, kMaxFiles);
  refused_ |= channels.refused;
  return channels;
}

Channels read_channels(const os::ProcFs& proc, pid_t pid, size_t most_files) {
  Channels channels;
  std::vector<int> numbers = proc.fds(pid);
  if (numbers.empty()) {
    std::string folder = fmt::format("{}/{}/fd", proc.root(), pid);
    if (::access(folder.c_str(), R_OK) != 0 && errno == EACCES) channels.refused = true;
  }
  if (numbers.size() > most_files) numbers.resize(most_files);
  for (int number : numbers) {
    auto link = proc.fd_link(pid, number);
    if (!link) continue;
    if (auto inode = os::socket_inode(*link)) {
      channels.sockets.push_back(*inode);
    } else if (auto device = model::accelerator_device(*link)) {
      channels.accelerators.emplace(*device);
    } else if (auto pipe = pipe_inode(*link)) {
      // The kernel gives the link the rights that the file was opened with.
      struct stat about {};
      std::string path = fmt::format("{}/{}/fd/{}", proc.root(), pid, number);
      if (::lstat(path.c_str(), &about) != 0) continue;
      channels.pipes[*pipe].reads |= (about.st_mode & S_IRUSR) != 0;
      channels.pipes[*pipe].writes |= (about.st_mode & S_IWUSR) != 0;
    }
  }
  return channels;
}

}  // namespace assay::capture
