#include "lab/kv/follower.h"

#include <algorithm>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "lab/common/process.h"

namespace lab::kv {

void load_all(Cache& cache, const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> snapshots, deltas;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    std::string name = entry.path().filename();
    if (name.starts_with("SNAPSHOT_")) snapshots.push_back(entry.path());
    if (name.starts_with("DELTA_")) deltas.push_back(entry.path());
  }
  if (error)
    die_saying("cannot read --delta-directory " + directory.string() + ": " + error.message());
  std::ranges::sort(snapshots);
  std::ranges::sort(deltas);
  if (!snapshots.empty()) cache.load_file(snapshots.back());
  for (const auto& path : deltas) cache.load_file(path);
}

Follower::Follower(Cache& cache, std::filesystem::path directory)
    : cache_(cache), directory_(std::move(directory)) {
  inotify_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  wake_ = eventfd(0, EFD_CLOEXEC);
  if (inotify_ < 0 || wake_ < 0) die("inotify");
  if (inotify_add_watch(inotify_, directory_.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO) < 0) {
    die("cannot follow --realtime-directory " + directory_.string());
  }
  thread_ = std::thread([this] { run(); });
}

Follower::~Follower() {
  uint64_t one = 1;
  if (write(wake_, &one, sizeof one) < 0) die("eventfd");
  thread_.join();
  close(inotify_);
  close(wake_);
}

void Follower::run() {
  name_thread("kv-follower");
  alignas(inotify_event) char buffer[16 * 1024];
  pollfd fds[2] = {{wake_, POLLIN, 0}, {inotify_, POLLIN, 0}};
  for (;;) {
    if (poll(fds, 2, -1) < 0 && errno != EINTR) die("poll");
    if (fds[0].revents & POLLIN) return;
    ssize_t got = read(inotify_, buffer, sizeof buffer);
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof *event + event->len);
      if (event->len > 0 && event->name[0] != '.') cache_.load_file(directory_ / event->name);
    }
  }
}

}  // namespace lab::kv
