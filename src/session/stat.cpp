#include "session/stat.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include <unistd.h>

#include "capture/stat/counter_set.h"
#include "capture/stat/switch_counter.h"
#include "capture/stat/syscall_counter.h"
#include "capture/stat/top_down_counter.h"
#include "model/syscalls.h"
#include "os/pmu.h"
#include "os/procfs.h"

namespace assay::session {
namespace {

constexpr int64_t kTickNs = 100 * kNsPerMs;
constexpr int64_t kShortestIntervalNs = kNsPerMs;  // a remainder that is worth a line
constexpr int64_t kLoadWarmupNs = kNsPerSecond;
constexpr int64_t kReportNs = 2 * kNsPerSecond;  // the load says how it goes more often

// Switches by /proc, which forgets threads as they end: what was last seen of them stays.
class SwitchesByProc {
 public:
  void begin(const os::ProcFs& proc, const target::ResolvedTarget& target) {
    look(proc, target);
    before_ = last_;
  }
  void look(const os::ProcFs& proc, const target::ResolvedTarget& target) {
    for (pid_t pid : target.pids()) {
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

bool any_alive(const os::ProcFs& proc, const target::ResolvedTarget& target) {
  return std::ranges::any_of(target.pids(), [&](pid_t pid) {
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

// Load that drives the target while it is counted, and how many requests it had answered.
class Driven {
 public:
  Result<void> start(const LoadRequest& request, const std::atomic<bool>& stop) {
    if (request.what.empty()) return {};
    auto driver = LoadDriver::create(request);
    if (!driver) return std::unexpected(driver.error());
    driver_ = std::move(*driver);
    auto ready = driver_->wait_until_ready(
        stop, [] { return false; }, [] {});
    if (!ready) return ready;
    if (auto started = driver_->start(); !started) return started;
    for (TimeNs until = monotonic_ns() + kLoadWarmupNs; !stop && monotonic_ns() < until;) {
      if (!driver_->poll(monotonic_ns())) return fail("the load failed: {}", driver_->fault());
      usleep(20'000);
    }
    return {};
  }
  // Waits for a report, so that counting begins with one.
  void begin() {
    TimeNs last = now().tick;
    wait_for_report([&] { return now().tick > last; });
    first_ = now();
  }
  void poll() {
    if (driver_) driver_->poll(monotonic_ns());
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
    if (!driver_) return;
    for (TimeNs until = monotonic_ns() + kReportNs; !seen() && monotonic_ns() < until;) {
      poll();
      usleep(5'000);
    }
  }
  State now() const {
    if (!driver_) return {};
    return {driver_->window().ok_so_far(), driver_->window().last_tick()};
  }

  std::unique_ptr<LoadDriver> driver_;
  State first_;
};

class Counting {
 public:
  Counting(const StatOptions& options, const std::atomic<bool>& stop, const IntervalSeen& seen)
      : options_(options), stop_(stop), interval_seen_(seen) {}

  Result<StatOutcome> run();

 private:
  Result<void> open();
  void open_extras();
  bool count_until(TimeNs end);
  void add_switches(const capture::SwitchCounts& before);

  const StatOptions& options_;
  const std::atomic<bool>& stop_;
  const IntervalSeen& interval_seen_;
  os::ProcFs proc_;
  target::ResolvedTarget target_;
  std::vector<pid_t> tids_;
  capture::CounterSet counters_{os::real_counter_kernel()};
  std::optional<capture::TopDownCounter> top_down_;
  std::unique_ptr<capture::SyscallCounter> syscalls_;
  std::optional<capture::SwitchCounter> switches_;
  SwitchesByProc switches_by_proc_;  // where the tracepoint cannot be counted
  Driven driven_;
  StatOutcome outcome_;
};

Result<void> Counting::open() {
  target::Surroundings surroundings;
  surroundings.self = getpid();
  surroundings.command = "assay stat";
  auto target = target::resolve(options_.target, proc_, surroundings);
  if (!target) return std::unexpected(target.error());
  target_ = std::move(*target);
  for (pid_t pid : target_.pids()) {
    for (pid_t tid : proc_.tids(pid)) tids_.push_back(tid);
  }
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
  auto syscalls = capture::open_syscall_counter(target_.pids(), tids_);
  if (syscalls) syscalls_ = std::move(*syscalls);
  outcome_.syscall_source = syscalls_ ? syscalls_->source() : syscalls.error().what;
}

// Counts until the time is over, it is told to stop or the target is gone; false for the last.
bool Counting::count_until(TimeNs end) {
  TimeNs begin = monotonic_ns(), since = begin;
  TimeNs due = options_.interval_ns > 0 ? begin + options_.interval_ns : INT64_MAX;
  model::Counts last = counters_.read_all();
  auto end_interval = [&](TimeNs now) {
    model::Counts counts = counters_.read_all();
    interval_seen_(static_cast<double>(since - begin) / 1e9, static_cast<double>(now - since) / 1e9,
                   capture::counts_between(last, counts));
    last = counts;
    since = now;
    while (due <= now) due += options_.interval_ns;
  };
  bool alive = true;
  while (alive && !stop_ && monotonic_ns() < end) {
    TimeNs wake = std::min({end, due, monotonic_ns() + kTickNs});
    usleep(static_cast<useconds_t>(std::max<int64_t>(0, wake - monotonic_ns()) / 1000 + 1));
    driven_.poll();
    if (!switches_) switches_by_proc_.look(proc_, target_);
    if (TimeNs now = monotonic_ns(); now >= due) end_interval(now);
    alive = any_alive(proc_, target_);
  }
  // What is left after the last whole interval.
  TimeNs now = monotonic_ns();
  if (options_.interval_ns > 0 && now - since > kShortestIntervalNs) end_interval(now);
  return alive;
}

void Counting::add_switches(const capture::SwitchCounts& before) {
  if (!switches_) switches_by_proc_.look(proc_, target_);
  capture::SwitchCounts now = switches_ ? switches_->read() : switches_by_proc_.since_begin();
  outcome_.voluntary_switches = now.voluntary - before.voluntary;
  outcome_.involuntary_switches = now.involuntary - before.involuntary;
}

Result<StatOutcome> Counting::run() {
  if (auto started = driven_.start(options_.load, stop_); !started)
    return std::unexpected(started.error());
  if (auto opened = open(); !opened) return std::unexpected(opened.error());
  driven_.begin();
  capture::SwitchCounts switches = switches_ ? switches_->read() : capture::SwitchCounts{};
  if (!switches_) switches_by_proc_.begin(proc_, target_);
  capture::SyscallCalls calls = syscalls_ ? syscalls_->read() : capture::SyscallCalls{};
  model::TopDownCounts slots = top_down_ ? top_down_->read() : model::TopDownCounts{};
  TimeNs begin = monotonic_ns();
  model::Counts first = counters_.read_all();
  outcome_.target_ended = !count_until(begin + options_.duration_ns);
  outcome_.counts = capture::counts_between(first, counters_.read_all());
  outcome_.seconds = static_cast<double>(monotonic_ns() - begin) / 1e9;
  if (top_down_) outcome_.top_down = capture::top_down_between(slots, top_down_->read());
  if (syscalls_) add_syscalls(calls, syscalls_->read(), outcome_);
  add_switches(switches);
  outcome_.requests = driven_.requests(outcome_.seconds);
  outcome_.no_requests = driven_.why_unmeasured(outcome_.requests);
  outcome_.processes = target_.processes.size();
  outcome_.threads = counters_.tids().size();
  outcome_.user_only = counters_.user_only();
  for (const target::ResolvedProcess& process : target_.processes) {
    for (const target::ResolvedThread& thread : process.threads) {
      if (options_.per_thread)
        outcome_.per_thread.push_back(
            {process.pid, thread.tid, thread.name, counters_.read_thread(thread.tid)});
    }
  }
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
  out.events = counters.read_all();
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
