#include "capture/stat/counter_set.h"

#include <cerrno>

#include <fmt/format.h>

namespace assay::capture {
namespace {

std::string why_refused(int code, bool hardware) {
  switch (code) {
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
      return hardware ? "the CPU does not offer it (a virtual machine without a PMU, usually)"
                      : "the kernel does not offer it";
    case EACCES:
    case EPERM:
      return "not permitted: kernel.perf_event_paranoid";
    case EMFILE:
    case ENFILE:
      return "no file descriptors left";
    default:
      return fmt::format("refused (errno {})", code);
  }
}

bool is_refused_permission(int code) {
  return code == EACCES || code == EPERM;
}

}  // namespace

Result<void> CounterSet::open(const std::vector<pid_t>& tids, Which which) {
  for (pid_t tid : tids) {
    size_t before = events_.size();
    for (std::span<const CounterId> group : counter_groups()) {
      bool wanted = which == Which::all || counter_event(group.front()).hardware;
      if (wanted) open_group(group, tid);
    }
    if (events_.size() > before) tids_.push_back(tid);
  }
  if (!events_.empty()) return {};
  if (tids.empty()) return fail("the target has no threads");
  return fail_with_remedy(fmt::format("no counter can be opened: {}",
                                      problems_[0].empty() ? "the target has ended" : problems_[0]),
                          "run as root, or: sudo sysctl -w kernel.perf_event_paranoid=1");
}

void CounterSet::open_group(std::span<const CounterId> group, pid_t tid) {
  int leader = -1;
  for (CounterId id : group) {
    const CounterEvent& event = counter_event(id);
    auto fd = kernel_.open(counter_attributes(event, user_only_), tid, leader);
    if (!fd && is_refused_permission(fd.error().code) && !user_only_) {
      // An ordinary user may count what its own programs do, not what the kernel does for them.
      fd = kernel_.open(counter_attributes(event, true), tid, leader);
      if (fd) user_only_ = true;
    }
    if (!fd) {
      if (fd.error().code != ESRCH)
        problems_[static_cast<size_t>(id)] = why_refused(fd.error().code, event.hardware);
      continue;
    }
    if (leader < 0) leader = fd->get();
    events_.push_back({tid, id, std::move(*fd)});
  }
}

Counts CounterSet::read_all() {
  std::vector<const Opened*> all;
  for (const Opened& event : events_) all.push_back(&event);
  return read(all);
}

Counts CounterSet::read_thread(pid_t tid) {
  std::vector<const Opened*> of_thread;
  for (const Opened& event : events_) {
    if (event.tid == tid) of_thread.push_back(&event);
  }
  return read(of_thread);
}

Counts CounterSet::read(const std::vector<const Opened*>& events) {
  Counts counts;
  std::array<double, kCounterCount> enabled{}, running{};
  for (const Opened* event : events) {
    auto reading = kernel_.read(event->fd.get());
    if (!reading) continue;
    auto at = static_cast<size_t>(event->id);
    counts[at].counted = true;
    enabled[at] += static_cast<double>(reading->enabled_ns);
    running[at] += static_cast<double>(reading->running_ns);
    if (reading->running_ns == 0) continue;
    counts[at].value += static_cast<double>(reading->value) *
                        static_cast<double>(reading->enabled_ns) /
                        static_cast<double>(reading->running_ns);
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    if (enabled[i] > 0) counts[i].counted_share = running[i] / enabled[i];
    if (!counts[i].counted) counts[i].problem = problems_[i];
  }
  return counts;
}

Counts counts_between(const Counts& before, const Counts& after) {
  Counts between;
  for (size_t i = 0; i < between.size(); ++i) {
    between[i] = after[i];
    between[i].counted = before[i].counted && after[i].counted;
    between[i].value = std::max(0.0, after[i].value - before[i].value);
  }
  return between;
}

}  // namespace assay::capture
