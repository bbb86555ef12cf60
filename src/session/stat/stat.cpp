#include "session/stat/stat.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/stat/counter_set.h"
#include "capture/stat/switch_counter.h"
#include "capture/stat/syscall_counter.h"
#include "capture/stat/top_down_counter.h"
#include "model/syscalls.h"
#include "os/machine/pmu.h"
#include "os/process/procfs.h"
#include "session/record/running_target.h"

namespace assay::session {
namespace {

constexpr int64_t kTickNs = 100 * kNsPerMs;
constexpr int64_t kShortestIntervalNs = kNsPerMs;  // a remainder that is worth a line
constexpr int64_t kLoadWarmupNs = kNsPerSecond;
constexpr int64_t kReportNs = 2 * kNsPerSecond;  // the load says how it goes more often

// Switches by /proc, which forgets threads as they end: what was last seen of them stays.
class SwitchesByProc {
 public:
  void begin(const os::ProcFs& proc, const std::vector<pid_t>& pids) {
    look(proc, pids);
    before_ = last_;
  }
  void look(const os::ProcFs& proc, const std::vector<pid_t>& pids) {
    for (pid_t pid : pids) {
      for (pid_t tid : proc.tids(pid)) {
        auto status = proc.thread_status(pid, tid);
        if (status) last_[tid] = {status->voluntary_switches, status->involuntary_switches};
      }
    }
  }
  // A thread that began meanwhile counts from its first switch.
  capture::SwitchCounts since_begin() const {
    capture::SwitchCounts sum;
    for (const auto& [tid, now] : last_) {
      auto found = before_.find(tid);
      capture::SwitchCounts then = found == before_.end() ? capture::SwitchCounts{} : found->second;
      sum.voluntary += now.voluntary - std::min(now.voluntary, then.voluntary);
      sum.involuntary += now.involuntary - std::min(now.involuntary, then.involuntary);
    }
    return sum;
  }

 private:
  std::map<pid_t, capture::SwitchCounts> before_, last_;
};

bool any_alive(const os::ProcFs& proc, const std::vector<pid_t>& pids) {
  return std::ranges::any_of(pids, [&](pid_t pid) {
    auto stat = proc.stat(pid);
    return stat && stat->state != 'Z';
  });
}

void add_syscalls(const capture::SyscallCalls& before, const capture::SyscallCalls& after,
                  StatOutcome& outcome) {
  outcome.syscalls = after.all - std::min(after.all, before.all);
  for (const auto& [number, count] : after.by_number) {
    auto then = before.by_number.find(number);
    uint64_t calls = count - (then == before.by_number.end() ? 0 : std::min(count, then->second));
    if (calls == 0) continue;
    std::string_view name =
        number <= UINT16_MAX ? model::syscall_name(static_cast<uint16_t>(number)) : "";
    outcome.by_syscall.push_back(
        {name.empty() ? fmt::format("{}", number) : std::string(name), calls});
  }
  std::ranges::stable_sort(outcome.by_syscall, std::greater{}, &SyscallRate::calls);
}

double seconds_between(TimeNs from, TimeNs to) {
  return static_cast<double>(to - from) / 1e9;
}

// How many requests the load had answered that drives the target while it is counted.
class Driven {
 public:
  explicit Driven(LoadDriver* driver) : driver_(driver) {}
  // Waits for a report, so that counting begins with one.
  void begin() {
    TimeNs last = now().tick;
    wait_for_report([&] { return now().tick > last; });
    first_ = now();
  }
  // Why there are no requests to divide by; "" without load, or where it answers.
  std::string why_unmeasured(uint64_t requests) const {
    if (!driver_ || requests > 0) return "";
    if (driver_->is_command())
      return "the load is a command, which does not say how many requests were answered: give a "
             "URL to have counts per request";
    std::string fault = driver_->fault();
    return "no request of the load was answered well" + (fault.empty() ? "" : ": " + fault);
  }
  // Reports come about once a second, so that the rate between two of them is what is exact.
  uint64_t requests(double seconds) {
    TimeNs end = monotonic_ns();
    wait_for_report([&] { return now().tick >= end; });
    State last = now();
    if (last.tick <= first_.tick) return 0;
    double rate = static_cast<double>(last.ok - first_.ok) /
                  (static_cast<double>(last.tick - first_.tick) / 1e9);
    return static_cast<uint64_t>(rate * seconds);
  }

 private:
  struct State {
    uint64_t ok = 0;
    TimeNs tick = 0;
  };
  void wait_for_report(const std::function<bool()>& seen) {
    if (!driver_ || driver_->is_command()) return;  // a command reports nothing
    for (TimeNs until = monotonic_ns() + kReportNs; !seen() && monotonic_ns() < until;) {
      driver_->poll(monotonic_ns());
      usleep(5'000);
    }
  }
  State now() const {
    if (!driver_) return {};
    return {driver_->window().ok_so_far(), driver_->window().last_tick()};
  }

  LoadDriver* driver_;  // null: nothing drives the target
  State first_;
};

// Sleeps until a moment, or until a process has ended.
class EndWatch {
 public:
  explicit EndWatch(pid_t pid)
      : pidfd_(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1) {}
  void sleep_until(TimeNs wake) {
    int64_t left = std::max<int64_t>(0, wake - monotonic_ns());
    timespec pause{left / kNsPerSecond, left % kNsPerSecond};
    pollfd ended{pidfd_.get(), POLLIN, 0};  // without a descriptor it only sleeps
    ::ppoll(&ended, 1, &pause, nullptr);
  }

 private:
  UniqueFd pidfd_;
};

// What RunningTarget takes from the options of a recording.
RecordOptions running_options(const StatOptions& options) {
  RecordOptions out;
  out.target = options.target;
  out.load = options.load;
  out.warmup_ns = options.load.what.empty() ? 0 : kLoadWarmupNs;
  return out;
}

class Counting {
 public:
  Counting(const StatOptions& options, const std::atomic<bool>& stop, const IntervalSeen& seen)
      : options_(options),
        stop_(stop),
        interval_seen_(seen),
        running_options_(running_options(options)) {}

  Result<StatOutcome> run();

 private:
  // Everything that is read at the begin and at the end.
  struct Readings {
    TimeNs at = 0;
    capture::CounterReadings counters;
    capture::SwitchCounts switches;
    capture::SyscallCalls calls;
    capture::TopDownCounter::Readings slots;
  };

  Result<void> find();
  Result<void> open();
  std::string name_of(pid_t pid, pid_t tid) const;
  void open_extras();
  Result<void> count();
  Readings read();
  bool has_ended();
  void count_until_end(const Readings& first);
  void conclude(const Readings& first, const Readings& last);
  void add_threads(const Readings& first, const Readings& last);

  const StatOptions& options_;
  const std::atomic<bool>& stop_;
  const IntervalSeen& interval_seen_;
  const RecordOptions running_options_;
  os::ProcFs proc_;
  RunningTarget running_{running_options_, stop_, proc_};
  std::vector<ThreadCounts> threads_;  // when counting began
  std::vector<pid_t> pids_, tids_;
  capture::CounterSet counters_{os::real_counter_kernel()};
  std::optional<capture::TopDownCounter> top_down_;
  std::unique_ptr<capture::SyscallCounter> syscalls_;
  std::optional<capture::SwitchCounter> switches_;
  SwitchesByProc switches_by_proc_;  // where the tracepoint cannot be counted
  StatOutcome outcome_;
};

Result<void> Counting::find() {
  if (options_.target.command.empty()) {
    // Looked for once more below; here for remedies that name this command.
    target::Surroundings surroundings;
    surroundings.self = getpid();
    surroundings.command = "assay stat";
    if (auto there = target::resolve(options_.target, proc_, surroundings); !there)
      return std::unexpected(there.error());
  }
  if (auto found = running_.find([](const char*, TimeNs) {}); !found) return found;
  // Under load it may have other threads than before.
  if (running_.attached()) return running_.resolve();
  return {};
}

// A held command has not its own name yet.
std::string Counting::name_of(pid_t pid, pid_t tid) const {
  if (!running_.attached())
    return std::filesystem::path(options_.target.command.front()).filename();
  return proc_.comm(pid, tid).value_or("");
}

Result<void> Counting::open() {
  pids_ = running_.pids();
  for (pid_t pid : pids_) {
    for (pid_t tid : proc_.tids(pid)) threads_.push_back({pid, tid, name_of(pid, tid), {}});
  }
  for (const ThreadCounts& thread : threads_) tids_.push_back(thread.tid);
  if (auto opened = counters_.open(tids_); !opened) return opened;
  open_extras();
  return {};
}

// What may be missing without making the rest useless.
void Counting::open_extras() {
  auto pmu = os::read_pmu();
  auto plan = pmu ? capture::plan_top_down(*pmu)
                  : Result<capture::TopDownPlan>(std::unexpected(pmu.error()));
  if (plan) {
    top_down_.emplace(os::real_counter_kernel(), *plan);
    if (auto opened = top_down_->open(tids_, counters_.user_only()); !opened) {
      outcome_.top_down.problem = opened.error().what;
      top_down_.reset();
    }
  } else {
    outcome_.top_down.problem = plan.error().what;
  }
  if (auto switches = capture::open_switch_counter(tids_)) switches_ = std::move(*switches);
  if (!options_.syscalls) return;
  auto syscalls = capture::open_syscall_counter(pids_, tids_);
  if (syscalls) syscalls_ = std::move(*syscalls);
  outcome_.syscall_source = syscalls_ ? syscalls_->source() : syscalls.error().what;
}

Counting::Readings Counting::read() {
  Readings now;
  if (switches_) {
    now.switches = switches_->read();
  } else {
    switches_by_proc_.look(proc_, pids_);
    now.switches = switches_by_proc_.since_begin();
  }
  if (syscalls_) now.calls = syscalls_->read();
  if (top_down_) now.slots = top_down_->read();
  now.counters = counters_.read();
  now.at = monotonic_ns();
  return now;
}

bool Counting::has_ended() {
  if (running_.is_launched() && running_.launched_has_ended()) return true;
  return !any_alive(proc_, pids_);
}

// Counts until the time is over, it is told to stop or the target is gone.
void Counting::count_until_end(const Readings& first) {
  TimeNs end = options_.duration_ns > 0 ? first.at + options_.duration_ns : INT64_MAX;
  TimeNs since = first.at;
  TimeNs due = options_.interval_ns > 0 ? since + options_.interval_ns : INT64_MAX;
  capture::CounterReadings last = first.counters;
  auto end_interval = [&](TimeNs now) {
    capture::CounterReadings readings = counters_.read();
    interval_seen_(seconds_between(first.at, since), seconds_between(first.at, now),
                   counters_.between(last, readings));
    last = std::move(readings);
    since = now;
    while (due <= now) due += options_.interval_ns;
  };
  EndWatch watch(running_.is_launched() ? pids_.front() : 0);
  bool ended = false;
  while (!ended && !stop_ && monotonic_ns() < end) {
    watch.sleep_until(std::min({end, due, monotonic_ns() + kTickNs}));
    if (LoadDriver* load = running_.load()) load->poll(monotonic_ns());
    if (!switches_) switches_by_proc_.look(proc_, pids_);
    if (TimeNs now = monotonic_ns(); now >= due) end_interval(now);
    ended = has_ended();
  }
  outcome_.end = ended ? StatEnd::target_ended : stop_ ? StatEnd::interrupted : StatEnd::time;
  // What is left after the last whole interval.
  TimeNs now = monotonic_ns();
  if (options_.interval_ns > 0 && now - since > kShortestIntervalNs) end_interval(now);
}

// Those that were counted: some may have ended before their counters were open.
void Counting::add_threads(const Readings& first, const Readings& last) {
  for (ThreadCounts& thread : threads_) {
    if (std::ranges::find(counters_.tids(), thread.tid) == counters_.tids().end()) continue;
    thread.counts = counters_.thread_between(thread.tid, first.counters, last.counters);
    outcome_.per_thread.push_back(std::move(thread));
  }
}

void Counting::conclude(const Readings& first, const Readings& last) {
  outcome_.seconds = seconds_between(first.at, last.at);
  outcome_.counts = counters_.between(first.counters, last.counters);
  if (top_down_) outcome_.top_down = top_down_->between(first.slots, last.slots);
  if (syscalls_) add_syscalls(first.calls, last.calls, outcome_);
  outcome_.voluntary_switches = last.switches.voluntary - first.switches.voluntary;
  outcome_.involuntary_switches = last.switches.involuntary - first.switches.involuntary;
  outcome_.processes = pids_.size();
  outcome_.threads = counters_.tids().size();
  outcome_.user_only = counters_.user_only();
  if (options_.per_thread) add_threads(first, last);
}

Result<void> Counting::count() {
  if (auto opened = open(); !opened) return opened;
  Driven driven(running_.load());
  driven.begin();
  if (!switches_) switches_by_proc_.begin(proc_, pids_);
  Readings first = read();
  if (auto released = running_.release(); !released) return released;
  count_until_end(first);
  Readings last = read();
  conclude(first, last);
  outcome_.requests = driven.requests(outcome_.seconds);
  outcome_.no_requests = driven.why_unmeasured(outcome_.requests);
  return {};
}

Result<StatOutcome> Counting::run() {
  Result<void> done = find();
  if (done) done = count();
  // A command that was held all the time ends with its launcher.
  if (done || running_.attached()) running_.stop_launched();
  if (!done) return std::unexpected(done.error());
  outcome_.launched_exit = running_.launched_exit();
  return std::move(outcome_);
}

}  // namespace

Result<StatOutcome> stat(const StatOptions& options, const std::atomic<bool>& stop,
                         const IntervalSeen& interval_seen) {
  return Counting(options, stop, interval_seen).run();
}

Countable countable_events() {
  Countable out;
  capture::CounterSet counters(os::real_counter_kernel());
  (void)counters.open({static_cast<pid_t>(gettid())});
  // Between a reading and itself: which are open, whether or not they had a turn by now.
  capture::CounterReadings now = counters.read();
  out.events = counters.between(now, now);
  auto pmu = os::read_pmu();
  auto plan = pmu ? capture::plan_top_down(*pmu)
                  : Result<capture::TopDownPlan>(std::unexpected(pmu.error()));
  if (!plan) out.top_down = plan.error().what;
  auto syscalls = capture::open_syscall_counter({getpid()}, {static_cast<pid_t>(gettid())});
  out.syscalls = syscalls ? fmt::format("yes, by {}", (*syscalls)->source())
                          : fmt::format("no: {}", syscalls.error().what);
  return out;
}

}  // namespace assay::session
