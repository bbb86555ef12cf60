#include "session/lifecycle/life_watch.h"

#include <algorithm>
#include <cerrno>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace assay::session {
namespace {

constexpr size_t kMostWatched = 256;  // descriptors are for others, too

}  // namespace

void LifeWatch::end(Watched& watched) {
  watched.ended = true;
  watched.pidfd.reset();
  last_end_ = monotonic_ns();
}

void LifeWatch::follow(const std::vector<pid_t>& pids) {
  std::erase_if(watched_, [&](const auto& entry) {
    return std::find(pids.begin(), pids.end(), entry.first) == pids.end();
  });
  for (pid_t pid : pids) {
    auto [entry, is_new] = watched_.try_emplace(pid);
    if (!is_new || watched_.size() > kMostWatched) continue;
    entry->second.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (entry->second.pidfd.get() < 0 && errno == ESRCH) end(entry->second);
  }
}

void LifeWatch::wait(int64_t ns) {
  std::vector<pollfd> polled;
  std::vector<Watched*> of;
  for (auto& [pid, watched] : watched_) {
    if (watched.pidfd.get() < 0) continue;
    polled.push_back({watched.pidfd.get(), POLLIN, 0});
    of.push_back(&watched);
  }
  int64_t left = std::max<int64_t>(0, ns);
  timespec pause{left / kNsPerSecond, left % kNsPerSecond};
  if (::ppoll(polled.data(), polled.size(), &pause, nullptr) <= 0) return;
  for (size_t i = 0; i < polled.size(); ++i) {
    if ((polled[i].revents & POLLIN) != 0) end(*of[i]);
  }
}

bool LifeWatch::all_ended() const {
  return !watched_.empty() && std::all_of(watched_.begin(), watched_.end(),
                                          [](const auto& entry) { return entry.second.ended; });
}

}  // namespace assay::session
