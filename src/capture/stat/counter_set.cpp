#include "capture/stat/counter_set.h"

#include <cerrno>

#include <fmt/format.h>

#include "capture/stat/counter_interval.h"

namespace assay::capture {
namespace {

constexpr const char* kNoTurn = "other events had the CPU's counters all this time";

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

std::optional<os::CounterReading> reading_of(const CounterReadings& readings, size_t at) {
  return readings.empty() ? os::CounterReading{} : readings[at];
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
      // An ordinary user may count user code of its own programs, but not the kernel's work for
      // them.
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

CounterReadings CounterSet::read() {
  CounterReadings readings;
  readings.reserve(events_.size());
  for (const Opened& event : events_) {
    auto reading = kernel_.read(event.fd.get());
    readings.push_back(reading ? std::optional(*reading) : std::nullopt);
  }
  return readings;
}

Counts CounterSet::between(const CounterReadings& before, const CounterReadings& after) const {
  return sum(before, after, std::nullopt);
}

Counts CounterSet::thread_between(pid_t tid, const CounterReadings& before,
                                  const CounterReadings& after) const {
  return sum(before, after, tid);
}

Counts CounterSet::sum(const CounterReadings& before, const CounterReadings& after,
                       std::optional<pid_t> only) const {
  Counts counts;
  std::array<CounterInterval, kCounterCount> intervals;
  for (size_t i = 0; i < events_.size(); ++i) {
    if (only && events_[i].tid != *only) continue;
    std::optional<os::CounterReading> then = reading_of(before, i);
    if (!then || !after[i]) continue;
    auto at = static_cast<size_t>(events_[i].id);
    counts[at].counted = true;
    intervals[at].add(*then, *after[i]);
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!counts[i].counted) {
      counts[i].problem = problems_[i];
      continue;
    }
    counts[i].counted = intervals[i].had_a_turn();
    if (!counts[i].counted) counts[i].problem = kNoTurn;
    counts[i].value = intervals[i].value();
    counts[i].counted_share = intervals[i].share();
  }
  return counts;
}

const Counts& CounterTotals::advance() {
  CounterReadings now = set_.read();
  added_.resize(now.size());
  Counts lately = set_.between(last_, now);
  for (size_t i = 0; i < totals_.size(); ++i) {
    totals_[i].counted_share = lately[i].counted_share;
    totals_[i].problem = lately[i].problem;
  }
  for (size_t i = 0; i < now.size(); ++i) {
    if (!now[i]) continue;
    model::Count& total = totals_[static_cast<size_t>(set_.events_[i].id)];
    total.counted = true;
    // Without a turn its last reading stays, so that the next turn covers this time as well.
    if (now[i]->running_ns <= added_[i].running_ns) continue;
    CounterInterval interval;
    interval.add(added_[i], *now[i]);
    total.value += interval.value();
    added_[i] = *now[i];
  }
  last_ = std::move(now);
  return totals_;
}

}  // namespace assay::capture
