#include "session/stat/stat.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include <unistd.h>

#include "capture/stat/counter_set.h"
#include "capture/stat/switch_counter.h"
#include "capture/stat/syscall_counter.h"
#include "capture/stat/top_down_counter.h"
#include "model/syscalls.h"
#include "os/machine/pmu.h"
#include "os/process/procfs.h"
#include "session/lifecycle/lifecycle.h"

namespace assay::session {
namespace {

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
  explicit Driven(LoadDriver* driver = nullptr) : driver_(driver) {}
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

Lifecycle::Plan plan_of(const StatOptions& options) {
  Lifecycle::Plan plan;
  plan.target.target = options.target;
  plan.target.asked_by = "assay stat";
  plan.target.load = options.load;
  plan.target.warmup_ns = options.load.what.empty() ? 0 : kLoadWarmupNs;
  plan.duration_ns = options.duration_ns;
  return plan;
}

class Counting final : public CaptureSteps {
 public:
  Counting(const StatOptions& options, const std::atomic<bool>& stop, const IntervalSeen& seen)
      : options_(options), interval_seen_(seen), life_(plan_of(options), stop, proc_) {}

  Result<StatOutcome> run();

  Result<void> prepare() override { return {}; }
  Result<void> open() override;
  Result<TimeNs> begin() override;
  std::optional<EndReason> poll(TimeNs now) override;
  TimeNs wake_by() const override { return due_; }
  void end(EndReason reason) override;

 private:
  // Everything that is read at the begin and at the end.
  struct Readings {
    TimeNs at = 0;
    capture::CounterReadings counters;
    capture::SwitchCounts switches;
    capture::SyscallCalls calls;
    capture::TopDownCounter::Readings slots;
  };

  std::string name_of(pid_t pid, pid_t tid) const;
  void open_extras();
  Readings read();
  bool has_ended();
  void end_interval(TimeNs now);
  void conclude(const Readings& first, const Readings& last);
  void add_threads(const Readings& first, const Readings& last);

  const StatOptions& options_;
  const IntervalSeen& interval_seen_;
  os::ProcFs proc_;
  Lifecycle life_;
  RunningTarget& running_ = life_.target();
  std::vector<ThreadCounts> threads_;  // when counting began
  std::vector<pid_t> pids_, tids_;
  capture::CounterSet counters_{os::real_counter_kernel()};
  std::optional<capture::TopDownCounter> top_down_;
  std::unique_ptr<capture::SyscallCounter> syscalls_;
  std::optional<capture::SwitchCounter> switches_;
  SwitchesByProc switches_by_proc_;  // where the tracepoint cannot be counted
  Driven driven_;
  Readings first_;
  capture::CounterReadings interval_begin_;
  TimeNs interval_since_ = 0;
  TimeNs due_ = INT64_MAX;  // when the interval ends
  StatOutcome outcome_;
};

// A held command has not its own name yet.
std::string Counting::name_of(pid_t pid, pid_t tid) const {
  if (!running_.attached())
    return std::filesystem::path(options_.target.command.front()).filename();
  return proc_.comm(pid, tid).value_or("");
}

Result<void> Counting::open() {
  // Under load it may have other threads than before.
  if (running_.attached()) {
    if (auto found = running_.resolve(); !found) return found;
  }
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

Result<TimeNs> Counting::begin() {
  driven_ = Driven(running_.load());
  driven_.begin();
  if (!switches_) switches_by_proc_.begin(proc_, pids_);
  first_ = read();
  interval_begin_ = first_.counters;
  interval_since_ = first_.at;
  if (options_.interval_ns > 0) due_ = first_.at + options_.interval_ns;
  if (auto released = running_.release(); !released) return std::unexpected(released.error());
  return first_.at;
}

void Counting::end_interval(TimeNs now) {
  capture::CounterReadings readings = counters_.read();
  interval_seen_(seconds_between(first_.at, interval_since_), seconds_between(first_.at, now),
                 counters_.between(interval_begin_, readings));
  interval_begin_ = std::move(readings);
  interval_since_ = now;
  while (due_ <= now) due_ += options_.interval_ns;
}

std::optional<EndReason> Counting::poll(TimeNs now) {
  if (!switches_) switches_by_proc_.look(proc_, pids_);
  if (now >= due_) end_interval(now);
  return has_ended() ? std::optional(EndReason::target_exited) : std::nullopt;
}

void Counting::end(EndReason reason) {
  outcome_.end = has_ended() ? EndReason::target_exited : reason;
  // What is left after the last whole interval.
  TimeNs now = monotonic_ns();
  if (options_.interval_ns > 0 && now - interval_since_ > kShortestIntervalNs) end_interval(now);
  conclude(first_, read());
  outcome_.requests = driven_.requests(outcome_.seconds);
  outcome_.no_requests = driven_.why_unmeasured(outcome_.requests);
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

Result<StatOutcome> Counting::run() {
  auto ended = life_.run(*this);
  if (!ended) return std::unexpected(ended.error());
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
