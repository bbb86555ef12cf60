// The decision rules, in order. Each is a function of the report that gives a claim or nothing; the
// thresholds stand here and nowhere else. docs/verdict.md says where they come from.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/verdict/verdict.h"
#include "analysis/wording.h"
#include "base/units.h"
#include "model/display_name.h"

namespace assay::analysis {
namespace {

constexpr double kThrottled = 0.05;
constexpr double kSaturated = 0.85;      // of the CPUs that the target may use
constexpr double kHostSaturated = 0.90;  // of the host, when others take the rest
constexpr double kHostNearlySaturated = 0.75;
constexpr double kSerialReady = 0.90;   // one thread running or ready to run
constexpr double kMostOfAStage = 0.60;  // of its CPU time in one kind of work
constexpr double kAllocator = 0.20;     // of CPU time
constexpr double kSpin = 0.15;
constexpr double kLockCpu = 0.40;
constexpr double kNetworkStack = 0.40;
constexpr double kLockShare = 0.20;   // of busy time
constexpr double kLockWaited = 0.30;  // of the window, at least one waiter at one lock
constexpr double kDisk = 0.20;
constexpr double kSend = 0.10;
constexpr double kDownstream = 0.20;
constexpr double kTimer = 0.10;
constexpr double kRunqueue = 0.20;     // of ready time
constexpr double kUnderloaded = 0.50;  // utilisation below this
constexpr double kCalmThread = 0.70;
constexpr double kLittleBlocked = 0.10;
constexpr double kQueued = 0.30;       // of polls with a backlog
constexpr double kUnaccounted = 0.60;  // of latency that no busy thread explains

double of(const std::optional<double>& number, double otherwise = 0) {
  return number.value_or(otherwise);
}

std::string percent(double share) {
  return format_percent(share);
}

// How far a number is beyond its threshold, as confidence.
double confidence(double value, double threshold) {
  double margin = threshold > 0 ? value / threshold - 1 : 1;
  return std::clamp(0.6 + margin, 0.55, 0.95);
}

using MaybeClaim = std::optional<Claim>;

const ThreadTime* busiest(const Report& report) {
  const ThreadTime* best = nullptr;
  for (const ThreadTime& thread : report.threads) {
    auto ready = [](const ThreadTime& t) { return t.time.running_ns() + t.time.runqueue_ns; };
    if (!best || ready(thread) > ready(*best)) best = &thread;
  }
  return best;
}

std::string cpu_text(const Report& report) {
  const Vitals& v = report.vitals;
  return fmt::format("{:.2f} of {:.3g} usable CPUs in use ({})", of(v.cpus_used),
                     of(v.usable_cpus, 1), percent(of(v.utilisation)));
}

std::string hottest_text(const Report& report) {
  for (const HotFunction& f : report.on_cpu.functions) {
    if (f.kind != CodeKind::marker && f.self_samples > 0) {
      return fmt::format("; {} in {} ({})", largest_part(f.self.share), model::short_name(f.name),
                         percent(f.self.share));
    }
  }
  return "";
}

// The function of the target that the longest waits of a kind are made by.
std::string waiter_text(const Report& report, std::initializer_list<BlockKind> kinds) {
  for (const WaitSummary& wait : report.off_cpu.paths) {
    if (wait.idle || std::find(kinds.begin(), kinds.end(), wait.kind) == kinds.end()) continue;
    for (const FrameText& frame : wait.frames) {
      bool library = frame.kind != CodeKind::user || frame.module.starts_with("lib") ||
                     frame.function.starts_with("std::") || !frame.named;
      if (!library) return " in " + model::short_name(frame.function);
    }
  }
  return "";
}

MaybeClaim throttled(const Report& report) {
  const Vitals& v = report.vitals;
  double periods = of(v.throttled_periods), wall = of(v.throttled_wall);
  if (periods <= kThrottled && wall <= kThrottled) return {};
  return Claim{
      "throttled",
      fmt::format("Throttled by its CPU quota: in {} of the periods the target had used up "
                  "its {:.3g} CPUs and was stopped.",
                  percent(periods), of(v.usable_cpus)),
      confidence(std::max(periods, wall), kThrottled),
      {fmt::format("throttled periods {}", percent(periods)),
       fmt::format("time held back {:.2f} s per s", wall), cpu_text(report)}};
}

// What the CPU time is made of, when it is the limit.
struct CpuParts {
  double allocator = 0, spin = 0, lock = 0, network = 0;

  std::string kind() const {
    if (allocator >= kAllocator) return "allocator";
    if (spin >= kSpin) return "spin";
    if (lock >= kLockCpu) return "lock";
    if (network >= kNetworkStack) return "network-stack";
    return "cpu";
  }

  std::string text() const {
    std::string which = kind();
    if (which == "allocator") {
      return fmt::format("{} of it goes into allocating and freeing memory", percent(allocator));
    }
    if (which == "spin") return fmt::format("{} of it is spent spinning", percent(spin));
    if (which == "lock") {
      return fmt::format("{} of it goes into taking and releasing locks", percent(lock));
    }
    if (which == "network-stack") {
      return fmt::format("{} of it is the kernel's network stack", percent(network));
    }
    return "it is spent computing";
  }
};

// Who is behind the CPU time of a kind: the function to look at first.
std::string caller_text(const Report& report, std::string_view kind) {
  CategoryRole role = kind == "allocator"       ? CategoryRole::allocator
                      : kind == "network-stack" ? CategoryRole::network
                      : kind == "lock"          ? CategoryRole::lock
                      : kind == "spin"          ? CategoryRole::spin
                                                : CategoryRole::none;
  const RoleCaller& by = report.role_callers[static_cast<size_t>(role)];
  if (role == CategoryRole::none || (by.caller.empty() && by.entry.empty())) return "";
  std::string who = by.caller.empty() ? by.entry : by.caller;
  std::string through = by.caller.empty() || by.entry.empty() || by.entry == by.caller
                            ? ""
                            : fmt::format(" through {}", model::short_name(by.entry));
  return fmt::format(", {} of that for {}{}", percent(by.share), model::short_name(who), through);
}

Claim cpu_claim(const Report& report, const std::string& why, double sure) {
  const Vitals& v = report.vitals;
  CpuParts parts{of(v.allocator_cpu) + of(v.collector_cpu), of(v.spin_cpu), of(v.lock_cpu),
                 of(v.network_cpu)};
  std::string kind = parts.kind();
  return {kind,
          fmt::format("CPU-bound: {}; {}{}.", why, parts.text(),
                      kind == "cpu" ? hottest_text(report) : caller_text(report, kind)),
          sure,
          {cpu_text(report),
           fmt::format("allocator {}, spinning {}, locks {}, network stack {} of CPU time",
                       percent(parts.allocator), percent(parts.spin), percent(parts.lock),
                       percent(parts.network))}};
}

MaybeClaim cpu(const Report& report) {
  const Vitals& v = report.vitals;
  if (of(v.utilisation) < kSaturated) return {};
  return cpu_claim(report,
                   fmt::format("the target keeps {} of its {:.3g} CPUs busy",
                               percent(std::min(1.0, of(v.utilisation))), of(v.usable_cpus, 1)),
                   confidence(of(v.utilisation), kSaturated - 0.05));
}

MaybeClaim serial_stage(const Report& report) {
  const Vitals& v = report.vitals;
  if (of(v.serial_ready) < kSerialReady || of(v.utilisation) >= kSaturated) return {};
  // A pool that fills the CPUs by itself is no stage, it is the CPU.
  if (of(v.serial_threads, 1) >= of(v.usable_cpus, 1)) return {};
  const ThreadTime* thread = busiest(report);
  std::string who = of(v.serial_threads, 1) > 1.5
                        ? fmt::format("the {:.0f} threads of pool {}", of(v.serial_threads),
                                      thread ? thread->pool : "")
                        : fmt::format("thread {}", thread ? thread->name : "");
  std::array<int64_t, kCategoryRoles> role{};
  int64_t sampled = 0;
  for (size_t i = 0; i < report.threads.size() && i < report.thread_cpu.size(); ++i) {
    if (!thread || report.threads[i].pool != thread->pool) continue;
    for (size_t r = 0; r < role.size(); ++r) role[r] += report.thread_cpu[i].role_ns[r];
    sampled += report.thread_cpu[i].sampled_ns;
  }
  auto share = [&](CategoryRole r) {
    return sampled > 0
               ? static_cast<double>(role[static_cast<size_t>(r)]) / static_cast<double>(sampled)
               : 0;
  };
  CpuParts parts{share(CategoryRole::allocator) + share(CategoryRole::collector),
                 share(CategoryRole::spin), share(CategoryRole::lock),
                 share(CategoryRole::network)};
  // A thread that polls is busy whatever the load: it is no stage that work passes through.
  if (parts.kind() == "spin") {
    return Claim{
        "spin",
        fmt::format("Spinning: {} is busy {} of the time, and {} of that is spent asking "
                    "for work or for a lock again and again.",
                    who, percent(of(v.serial_ready)), percent(parts.spin)),
        confidence(parts.spin, kSpin),
        {fmt::format("spinning {} of its CPU time", percent(parts.spin)), cpu_text(report)}};
  }
  // A stage that mostly does one thing is mended by doing less of that.
  bool one_thing = std::max({parts.allocator, parts.lock, parts.network}) >= kMostOfAStage;
  return Claim{
      one_thing ? parts.kind() : "serial-stage",
      fmt::format("A serial stage: {} is busy {} of the time and everything waits for it, "
                  "while the target uses {:.2f} of {:.3g} CPUs; {}{}.",
                  who, percent(of(v.serial_ready)), of(v.cpus_used), of(v.usable_cpus, 1),
                  parts.text(), one_thing ? caller_text(report, parts.kind()) : std::string()),
      confidence(of(v.serial_ready), kSerialReady - 0.1),
      {fmt::format("{}: running or ready {} of the time", who, percent(of(v.serial_ready))),
       fmt::format("next busiest {}", percent(of(v.serial_next))), cpu_text(report)}};
}

MaybeClaim lock(const Report& report) {
  const Vitals& v = report.vitals;
  if (report.locks.empty() || of(v.lock) < kLockShare) return {};
  const LockSummary* worst = nullptr;
  for (const LockSummary& one : report.locks) {
    if (one.waited_share >= kLockWaited && (!worst || one.total_ns > worst->total_ns)) worst = &one;
  }
  if (!worst) return {};
  int64_t all_ns = 0;
  for (const LockSummary& one : report.locks) all_ns += one.total_ns;
  double part = static_cast<double>(worst->total_ns) / static_cast<double>(all_ns);
  return Claim{
      worst->allocator ? "allocator" : "lock",
      fmt::format("Held back by a lock: {} of busy time is spent waiting for locks, {} for the {} "
                  "({} waits, {} each on average).",
                  percent(of(v.lock)), largest_part(part), worst->name, format_count(worst->waits),
                  format_duration(worst->mean_ns)),
      confidence(of(v.lock), kLockShare),
      {fmt::format("lock waits {} of busy time", percent(of(v.lock))),
       fmt::format("at least one waiter {} of the window, {:.1f} on average, {} at most",
                   percent(worst->waited_share), worst->mean_waiters, worst->most_waiters),
       cpu_text(report)}};
}

MaybeClaim disk(const Report& report) {
  const Vitals& v = report.vitals;
  double share = of(v.disk) + of(v.handoff_disk);
  if (of(v.major_faults_per_s) > 0) share += of(v.fault);
  if (share < kDisk) return {};
  Claim claim{"disk",
              fmt::format("Waits for storage: {} of busy time is spent{} waiting for a disk.",
                          percent(share), waiter_text(report, {BlockKind::disk})),
              confidence(share, kDisk),
              {fmt::format("disk waits {} of busy time", percent(share)), cpu_text(report)}};
  if (v.psi_io) claim.numbers.push_back(fmt::format("host I/O pressure {}", percent(*v.psi_io)));
  return claim;
}

MaybeClaim network(const Report& report) {
  const Vitals& v = report.vitals;
  bool waits = of(v.send) >= kSend;
  double held = std::max(of(v.held_by_peer), of(v.held_by_buffer));
  bool queued = of(v.send_q) >= kQueued && held >= 0.2;
  if (!waits && !queued) return {};
  std::string why =
      waits ? fmt::format("{} of busy time is spent{} waiting for room in send buffers",
                          percent(of(v.send)), waiter_text(report, {BlockKind::network_send}))
            : fmt::format(
                  "data waits to be sent in {} of the polls, and {} of the time the "
                  "receiver's window or the send buffer is full",
                  percent(of(v.send_q)), percent(held));
  return Claim{
      "network",
      fmt::format("Held back by the network or slow readers: {}.", why),
      waits ? confidence(of(v.send), kSend) : 0.7,
      {fmt::format("send waits {} of busy time", percent(of(v.send))),
       fmt::format("unsent data in {} of polls", percent(of(v.send_q))), cpu_text(report)}};
}

MaybeClaim downstream(const Report& report) {
  const Vitals& v = report.vitals;
  double share = of(v.receive) + of(v.poll) + of(v.pipe) + of(v.handoff_receive);
  if (share >= kDownstream) {
    return Claim{
        "downstream",
        fmt::format(
            "Waits for another service: {} of busy time is spent{} waiting for "
            "answers while a request is open.",
            percent(share),
            waiter_text(report, {BlockKind::network_receive, BlockKind::poll, BlockKind::pipe})),
        confidence(share, kDownstream),
        {fmt::format("waits for answers {} of busy time", percent(share)), cpu_text(report)}};
  }
  // An event loop does not block on its downstream: requests are open while threads are idle.
  bool open_requests = of(v.unaccounted) >= kUnaccounted && of(v.latency_ms) >= 2;
  if (!open_requests || of(v.outbound) < 0.5 || of(v.utilisation) >= kUnderloaded) return {};
  return Claim{"downstream",
               fmt::format("Waits for another service: requests take {:.1f} ms, of which {} passes "
                           "while every thread is idle and connections to other servers are open.",
                           of(v.latency_ms), percent(of(v.unaccounted))),
               0.6,
               {fmt::format("latency p50 {:.2f} ms", of(v.latency_ms)),
                fmt::format("{:.0f} outbound connections", of(v.outbound)), cpu_text(report)}};
}

MaybeClaim timer(const Report& report) {
  const Vitals& v = report.vitals;
  if (of(v.timer) >= kTimer) {
    return Claim{
        "timer",
        fmt::format("Waits for timers: {} of busy time is spent{} sleeping while a request "
                    "is open.",
                    percent(of(v.timer)), waiter_text(report, {BlockKind::timer})),
        confidence(of(v.timer), kTimer),
        {fmt::format("sleeps {} of busy time", percent(of(v.timer))), cpu_text(report)}};
  }
  if (of(v.delayed_ack) < kQueued) return {};
  return Claim{"timer",
               fmt::format("Waits for timers: {} of the waits on sockets last 40 ms or 200 ms, as "
                           "when small writes meet delayed acknowledgements.",
                           percent(of(v.delayed_ack))),
               0.6,
               {fmt::format("waits of 40 or 200 ms: {}", percent(of(v.delayed_ack)))}};
}

// Other explanations that account for more time than the run queue does.
double best_other_explanation(const Vitals& v) {
  return std::max({of(v.lock), of(v.disk), of(v.receive) + of(v.poll) + of(v.pipe), of(v.timer),
                   of(v.send), of(v.condition) + of(v.futex)});
}

// An open loop whose every request was answered, by a target that wants few CPUs, lacks nothing.
bool keeps_up(const Report& report) {
  const Workload& load = report.workload;
  if (!load.measured || load.closed_loop || !load.rate) return false;
  const Vitals& v = report.vitals;
  double wanted = of(v.cpus_used) / std::max(0.01, 1 - of(v.runqueue_of_ready));
  return load.throughput_per_s >= 0.95 * *load.rate && wanted < 0.5 * of(v.usable_cpus, 1);
}

MaybeClaim scheduler(const Report& report) {
  const Vitals& v = report.vitals;
  if (of(v.runqueue_of_ready) < kRunqueue || of(v.utilisation) >= kSaturated) return {};
  if (of(v.runqueue) <= best_other_explanation(v)) return {};
  if (keeps_up(report)) return {};
  double strangers = std::max(0.0, of(v.other_cpus) - of(v.generator_cpus));
  // A generator that nobody measured looks like a stranger, but it uses about as much as the
  // target.
  double least = report.workload.generator_cpus ? 0.5 : 1.5;
  bool neighbour = of(v.host_busy) >= kHostSaturated && strangers >= 0.25 * of(v.host_cpus, 1) &&
                   strangers >= least * of(v.cpus_used);
  bool confined = of(v.bound) > 0 && of(v.host_busy, 1) < kHostSaturated;
  if (!neighbour && !confined) return {};
  std::string why = neighbour ? fmt::format("other programs keep {:.1f} CPUs busy", strangers)
                              : fmt::format("it may use {:.3g} of {:.0f} CPUs", of(v.usable_cpus),
                                            of(v.host_cpus));
  return Claim{
      "scheduler",
      fmt::format("Waits for a CPU: threads that could run are kept waiting {} of the time; "
                  "{}.",
                  percent(of(v.runqueue_of_ready)), why),
      confidence(of(v.runqueue_of_ready), kRunqueue),
      {fmt::format("run-queue {} of ready time", percent(of(v.runqueue_of_ready))),
       fmt::format("host busy {}", percent(of(v.host_busy))), cpu_text(report)}};
}

// The load generator, or others, share the machine: the target's own utilisation understates it.
MaybeClaim shared_cpu(const Report& report) {
  const Vitals& v = report.vitals;
  if (of(v.utilisation) >= kSaturated) return {};
  // Threads that hand work to one another leave gaps; that they mostly queue for a CPU tells all
  // the same.
  bool queue = of(v.host_busy) >= kHostNearlySaturated && of(v.runqueue_of_ready) >= 0.3 &&
               of(v.running) + of(v.runqueue) >= 0.5 && of(v.utilisation) >= 0.5 &&
               of(v.running) + of(v.runqueue) + of(v.condition) + of(v.futex) >= 0.9;
  if (of(v.host_busy) < kHostSaturated && !queue) return {};
  // With most of the CPUs taken by the target itself, threads that wait for one another wait for
  // CPUs.
  bool wants_cpu = of(v.running) + of(v.runqueue) >= 0.6 || of(v.utilisation) >= 0.6;
  if (!wants_cpu || of(v.utilisation) < 0.25) return {};
  return cpu_claim(report,
                   fmt::format("the machine is {} busy, {:.2f} CPUs of it with the target, and its "
                               "threads are running or ready to run {} of their busy time",
                               percent(of(v.host_busy)), of(v.cpus_used),
                               percent(of(v.running) + of(v.runqueue))),
                   0.7);
}

double blocked_of_busy(const Vitals& v) {
  return std::max(0.0, 1 - of(v.running) - of(v.runqueue));
}

MaybeClaim not_enough_load(const Report& report) {
  const Vitals& v = report.vitals;
  bool calm = of(v.utilisation) < kUnderloaded && of(v.serial_ready) < kCalmThread;
  // Waits of an idle server's few requests are no problem: they are small against the window.
  double blocked_cpus = blocked_of_busy(v) > 0 && of(v.running) > 0
                            ? of(v.cpus_used) * blocked_of_busy(v) / of(v.running)
                            : 0;
  bool waits_little = blocked_of_busy(v) < kLittleBlocked || blocked_cpus < 0.05;
  // Threads that wait for a CPU on a full machine do not wait for requests.
  bool starved = of(v.runqueue_of_ready) >= 0.4 && of(v.host_busy, 1) >= kHostSaturated;
  bool queue = of(v.backlog) > 0.05 || (starved && !keeps_up(report));
  if (!calm || !waits_little || queue) return {};
  std::string spare = fmt::format("{} of its CPUs are free and its threads wait for work",
                                  percent(1 - of(v.utilisation)));
  std::vector<std::string> numbers{cpu_text(report),
                                   fmt::format("idle {} of thread time", percent(of(v.idle)))};
  bool closed = report.workload.measured && report.workload.closed_loop;
  if (closed && of(v.utilisation) >= 0.05) {
    numbers.push_back(fmt::format("{:.0f} requests in flight", of(v.concurrency)));
    return Claim{"concurrency-limited",
                 fmt::format("Not enough requests at once: with {:.0f} in flight, {}.",
                             of(v.concurrency), spare),
                 confidence(kUnderloaded, std::max(0.01, of(v.utilisation))), numbers};
  }
  return Claim{"underloaded", fmt::format("Under-loaded: {}.", spare),
               confidence(kUnderloaded, std::max(0.01, of(v.utilisation))), numbers};
}

MaybeClaim mixed(const Report& report) {
  const Vitals& v = report.vitals;
  std::vector<std::pair<double, std::string>> parts{
      {of(v.running), "running"},
      {of(v.runqueue), "waiting for a CPU"},
      {of(v.lock), "locks"},
      {of(v.condition) + of(v.futex), "other threads"},
      {of(v.receive) + of(v.poll), "answers from sockets"},
      {of(v.send), "send buffers"},
      {of(v.disk), "disks"},
      {of(v.timer), "timers"},
      {of(v.fault), "page faults"},
      {of(v.pipe) + of(v.other_waits), "something else"}};
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (size_t i = 0; i < 3; ++i) {
    text += fmt::format("{}{} {}", i ? ", " : "", parts[i].second, percent(parts[i].first));
  }
  return Claim{
      "mixed", fmt::format("No single limit: busy time is {}.", text), 0.5, {cpu_text(report)}};
}

}  // namespace

bool is_cpu_kind(std::string_view kind) {
  return kind == "cpu" || kind == "allocator" || kind == "spin" || kind == "network-stack" ||
         kind == "throttled" || kind == "scheduler" || kind == "serial-stage";
}

bool is_waiting_kind(std::string_view kind) {
  return kind == "lock" || kind == "disk" || kind == "network" || kind == "downstream" ||
         kind == "timer";
}

std::vector<Claim> claims(const Report& report) {
  using Rule = MaybeClaim (*)(const Report&);
  static constexpr Rule kRules[]{throttled, cpu,        serial_stage,   lock,
                                 disk,      network,    downstream,     timer,
                                 scheduler, shared_cpu, not_enough_load};
  std::vector<Claim> found;
  for (Rule rule : kRules) {
    if (auto claim = rule(report)) found.push_back(std::move(*claim));
  }
  if (found.empty()) found.push_back(*mixed(report));
  return found;
}

}  // namespace assay::analysis
