// The decision rules, in order. Each is a function of what was measured that gives a claim or
// nothing; the thresholds stand here and nowhere else. docs/verdict.md says where they come from.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "analysis/verdict/neighbours.h"
#include "analysis/verdict/one_at_a_time.h"
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
constexpr double kKeptWaiting = 0.10;  // of ready time, beside a stranger
constexpr double kUnderloaded = 0.50;  // utilisation below this
constexpr double kRoom = 0.10;         // of its CPUs free; below, the machine is full
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

std::string_view stem(VerdictKind kind) {
  return describe(kind).stem;
}

// Of busy time: the waits that lead to a verdict of this kind.
double waits_for(const Vitals& v, VerdictKind kind) {
  double share = 0;
  for (const BlockKindRow& row : block_kinds()) {
    if (row.verdict == kind) share += of(find_vital(row.vital)->of(v));
  }
  return share;
}

const ThreadTime* busiest(const Basis& basis) {
  const ThreadTime* best = nullptr;
  for (const ThreadTime& thread : basis.run.threads) {
    auto ready = [](const ThreadTime& t) { return t.time.running_ns() + t.time.runqueue_ns; };
    if (!best || ready(thread) > ready(*best)) best = &thread;
  }
  return best;
}

std::string cpu_text(const Basis& basis) {
  const Vitals& v = basis.vitals;
  return fmt::format("{:.2f} of {:.3g} usable CPUs in use ({})", of(v.cpus_used),
                     of(v.usable_cpus, 1), percent(of(v.utilisation)));
}

std::string hottest_text(const Basis& basis) {
  for (const HotFunction& f : basis.run.on_cpu.functions) {
    if (f.kind != CodeKind::marker && f.self_samples > 0) {
      return fmt::format("; {} in {} ({})", largest_part(f.self.share), model::short_name(f.name),
                         percent(f.self.share));
    }
  }
  return "";
}

// The function of the target that makes the longest of the waits that lead to a verdict.
std::string waiter_text(const Basis& basis, VerdictKind kind) {
  for (const WaitSummary& wait : basis.run.off_cpu.paths) {
    if (wait.idle || describe(wait.kind).verdict != kind) continue;
    for (const FrameText& frame : wait.frames) {
      bool library = frame.kind != CodeKind::user || frame.module.starts_with("lib") ||
                     frame.function.starts_with("std::") || !frame.named;
      if (!library) return " in " + model::short_name(frame.function);
    }
  }
  return "";
}

MaybeClaim throttled(const Basis& basis) {
  const Vitals& v = basis.vitals;
  double periods = of(v.throttled_periods), wall = of(v.throttled_wall);
  if (periods <= kThrottled && wall <= kThrottled) return {};
  return Claim{VerdictKind::throttled,
               fmt::format("{}: in {} of the periods the target had used up "
                           "its {:.3g} CPUs and was stopped.",
                           stem(VerdictKind::throttled), percent(periods), of(v.usable_cpus)),
               confidence(std::max(periods, wall), kThrottled),
               {fmt::format("throttled periods {}", percent(periods)),
                fmt::format("time held back {:.2f} s per s", wall), cpu_text(basis)}};
}

// Parts of CPU time that are not computing.
struct CpuShares {
  double allocator = 0, spin = 0, lock = 0, network = 0;
};
struct CpuPart {
  VerdictKind kind;
  CategoryRole role;
  double CpuShares::*share;
  double least;  // of CPU time, for the verdict to be of this kind
  const char* text;
};
constexpr CpuPart kCpuParts[]{
    {VerdictKind::allocator, CategoryRole::allocator, &CpuShares::allocator, kAllocator,
     "goes into allocating and freeing memory"},
    {VerdictKind::spin, CategoryRole::spin, &CpuShares::spin, kSpin, "is spent spinning"},
    {VerdictKind::lock, CategoryRole::lock, &CpuShares::lock, kLockCpu,
     "goes into taking and releasing locks"},
    {VerdictKind::network_stack, CategoryRole::network, &CpuShares::network, kNetworkStack,
     "is the kernel's network stack"},
};

// The part that makes the verdict more than "cpu"; null: the time is spent computing.
const CpuPart* main_part(const CpuShares& shares) {
  for (const CpuPart& part : kCpuParts) {
    if (shares.*part.share >= part.least) return &part;
  }
  return nullptr;
}

std::string part_text(const CpuShares& shares, const CpuPart* part) {
  if (!part) return "it is spent computing";
  return fmt::format("{} of it {}", percent(shares.*part->share), part->text);
}

// The function that causes most of the CPU time of a part: the one to look at first.
std::string caller_text(const Basis& basis, const CpuPart* part) {
  if (!part) return "";
  const RoleCaller& by = basis.run.role_callers[static_cast<size_t>(part->role)];
  if (by.caller.empty() && by.entry.empty()) return "";
  std::string who = by.caller.empty() ? by.entry : by.caller;
  std::string through = by.caller.empty() || by.entry.empty() || by.entry == by.caller
                            ? ""
                            : fmt::format(" through {}", model::short_name(by.entry));
  return fmt::format(", {} of that for {}{}", percent(by.share), model::short_name(who), through);
}

Claim cpu_claim(const Basis& basis, const std::string& why, double sure) {
  const Vitals& v = basis.vitals;
  CpuShares parts{of(v.allocator_cpu) + of(v.collector_cpu), of(v.spin_cpu), of(v.lock_cpu),
                  of(v.network_cpu)};
  const CpuPart* most = main_part(parts);
  return {most ? most->kind : VerdictKind::cpu,
          fmt::format("{}: {}; {}{}.", stem(VerdictKind::cpu), why, part_text(parts, most),
                      most ? caller_text(basis, most) : hottest_text(basis)),
          sure,
          {cpu_text(basis),
           fmt::format("allocator {}, spinning {}, locks {}, network stack {} of CPU time",
                       percent(parts.allocator), percent(parts.spin), percent(parts.lock),
                       percent(parts.network))}};
}

MaybeClaim cpu(const Basis& basis) {
  const Vitals& v = basis.vitals;
  if (of(v.utilisation) < kSaturated) return {};
  return cpu_claim(basis,
                   fmt::format("the target keeps {} of its {:.3g} CPUs busy",
                               percent(std::min(1.0, of(v.utilisation))), of(v.usable_cpus, 1)),
                   confidence(of(v.utilisation), kSaturated - 0.05));
}

MaybeClaim serial_stage(const Basis& basis) {
  const Vitals& v = basis.vitals;
  if (of(v.serial_ready) < kSerialReady || of(v.utilisation) >= kSaturated) return {};
  // A pool that fills the CPUs by itself is no stage, it is the CPU.
  if (of(v.serial_threads, 1) >= of(v.usable_cpus, 1)) return {};
  const ThreadTime* thread = busiest(basis);
  std::string who = of(v.serial_threads, 1) > 1.5
                        ? fmt::format("the {:.0f} threads of pool {}", of(v.serial_threads),
                                      thread ? thread->pool : "")
                        : fmt::format("thread {}", thread ? thread->name : "");
  std::array<int64_t, kCategoryRoles> role{};
  int64_t sampled = 0;
  for (size_t i = 0; i < basis.run.threads.size() && i < basis.run.thread_cpu.size(); ++i) {
    if (!thread || basis.run.threads[i].pool != thread->pool) continue;
    for (size_t r = 0; r < role.size(); ++r) role[r] += basis.run.thread_cpu[i].role_ns[r];
    sampled += basis.run.thread_cpu[i].sampled_ns;
  }
  auto share = [&](CategoryRole r) {
    return sampled > 0
               ? static_cast<double>(role[static_cast<size_t>(r)]) / static_cast<double>(sampled)
               : 0;
  };
  CpuShares parts{share(CategoryRole::allocator) + share(CategoryRole::collector),
                  share(CategoryRole::spin), share(CategoryRole::lock),
                  share(CategoryRole::network)};
  const CpuPart* most = main_part(parts);
  // A thread that polls is busy whatever the load: it is no stage that work passes through.
  if (most && most->kind == VerdictKind::spin) {
    return Claim{
        VerdictKind::spin,
        fmt::format("{}: {} is busy {} of the time, and {} of that is spent asking "
                    "for work or for a lock again and again.",
                    stem(VerdictKind::spin), who, percent(of(v.serial_ready)), percent(parts.spin)),
        confidence(parts.spin, kSpin),
        {fmt::format("spinning {} of its CPU time", percent(parts.spin)), cpu_text(basis)}};
  }
  // A stage that mostly does one thing is mended by doing less of that.
  bool one_thing = std::max({parts.allocator, parts.lock, parts.network}) >= kMostOfAStage;
  return Claim{
      one_thing && most ? most->kind : VerdictKind::serial_stage,
      fmt::format("{}: {} is busy {} of the time and everything waits for it, "
                  "while the target uses {:.2f} of {:.3g} CPUs; {}{}.",
                  stem(VerdictKind::serial_stage), who, percent(of(v.serial_ready)),
                  of(v.cpus_used), of(v.usable_cpus, 1), part_text(parts, most),
                  one_thing ? caller_text(basis, most) : std::string()),
      confidence(of(v.serial_ready), kSerialReady - 0.1),
      {fmt::format("{}: running or ready {} of the time", who, percent(of(v.serial_ready))),
       fmt::format("next busiest {}", percent(of(v.serial_next))), cpu_text(basis)}};
}

MaybeClaim lock(const Basis& basis) {
  const Vitals& v = basis.vitals;
  if (basis.run.locks.empty() || of(v.lock) < kLockShare) return {};
  const LockSummary* worst = nullptr;
  for (const LockSummary& one : basis.run.locks) {
    if (one.waited_share >= kLockWaited && (!worst || one.total_ns > worst->total_ns)) worst = &one;
  }
  if (!worst) return {};
  int64_t all_ns = 0;
  for (const LockSummary& one : basis.run.locks) all_ns += one.total_ns;
  double part = static_cast<double>(worst->total_ns) / static_cast<double>(all_ns);
  return Claim{
      worst->allocator ? VerdictKind::allocator : VerdictKind::lock,
      fmt::format("{}: {} of busy time is spent waiting for locks, {} for the {} "
                  "({} waits, {} each on average).",
                  stem(VerdictKind::lock), percent(of(v.lock)), largest_part(part), worst->name,
                  format_count(worst->waits), format_duration(worst->mean_ns)),
      confidence(of(v.lock), kLockShare),
      {fmt::format("lock waits {} of busy time", percent(of(v.lock))),
       fmt::format("at least one waiter {} of the window, {:.1f} on average, {} at most",
                   percent(worst->waited_share), worst->mean_waiters, worst->most_waiters),
       cpu_text(basis)}};
}

MaybeClaim disk(const Basis& basis) {
  const Vitals& v = basis.vitals;
  double share = waits_for(v, VerdictKind::disk) + of(v.handoff_disk);
  if (of(v.major_faults_per_s) > 0) share += of(v.fault);
  if (share < kDisk) return {};
  Claim claim{
      VerdictKind::disk,
      fmt::format("{}: {} of busy time is spent{} waiting for a disk.", stem(VerdictKind::disk),
                  percent(share), waiter_text(basis, VerdictKind::disk)),
      confidence(share, kDisk),
      {fmt::format("disk waits {} of busy time", percent(share)), cpu_text(basis)}};
  if (v.psi_io) claim.numbers.push_back(fmt::format("host I/O pressure {}", percent(*v.psi_io)));
  return claim;
}

MaybeClaim network(const Basis& basis) {
  const Vitals& v = basis.vitals;
  bool waits = of(v.send) >= kSend;
  double held = std::max(of(v.held_by_peer), of(v.held_by_buffer));
  bool queued = of(v.send_q) >= kQueued && held >= 0.2;
  if (!waits && !queued) return {};
  std::string why = waits
                        ? fmt::format("{} of busy time is spent{} waiting for room in send buffers",
                                      percent(of(v.send)), waiter_text(basis, VerdictKind::network))
                        : fmt::format(
                              "data waits to be sent in {} of the polls, and {} of the time the "
                              "receiver's window or the send buffer is full",
                              percent(of(v.send_q)), percent(held));
  return Claim{VerdictKind::network,
               fmt::format("{}: {}.", stem(VerdictKind::network), why),
               waits ? confidence(of(v.send), kSend) : 0.7,
               {fmt::format("send waits {} of busy time", percent(of(v.send))),
                fmt::format("unsent data in {} of polls", percent(of(v.send_q))), cpu_text(basis)}};
}

MaybeClaim downstream(const Basis& basis) {
  const Vitals& v = basis.vitals;
  double share = waits_for(v, VerdictKind::downstream) + of(v.handoff_receive);
  if (share >= kDownstream) {
    return Claim{
        VerdictKind::downstream,
        fmt::format("{}: {} of busy time is spent{} waiting for "
                    "answers while a request is open.",
                    stem(VerdictKind::downstream), percent(share),
                    waiter_text(basis, VerdictKind::downstream)),
        confidence(share, kDownstream),
        {fmt::format("waits for answers {} of busy time", percent(share)), cpu_text(basis)}};
  }
  // An event loop does not block on its downstream: requests are open while threads are idle.
  bool open_requests = of(v.unaccounted) >= kUnaccounted && of(v.latency_ms) >= 2;
  if (!open_requests || of(v.outbound) < 0.5 || of(v.utilisation) >= kUnderloaded) return {};
  return Claim{
      VerdictKind::downstream,
      fmt::format("{}: requests take {:.1f} ms, of which {} passes "
                  "while every thread is idle and connections to other servers are open.",
                  stem(VerdictKind::downstream), of(v.latency_ms), percent(of(v.unaccounted))),
      0.6,
      {fmt::format("latency p50 {:.2f} ms", of(v.latency_ms)),
       fmt::format("{:.0f} outbound connections", of(v.outbound)), cpu_text(basis)}};
}

MaybeClaim timer(const Basis& basis) {
  const Vitals& v = basis.vitals;
  if (of(v.timer) >= kTimer) {
    return Claim{VerdictKind::timer,
                 fmt::format("{}: {} of busy time is spent{} sleeping while a request "
                             "is open.",
                             stem(VerdictKind::timer), percent(of(v.timer)),
                             waiter_text(basis, VerdictKind::timer)),
                 confidence(of(v.timer), kTimer),
                 {fmt::format("sleeps {} of busy time", percent(of(v.timer))), cpu_text(basis)}};
  }
  if (of(v.delayed_ack) < kQueued) return {};
  return Claim{VerdictKind::timer,
               fmt::format("{}: {} of the waits on sockets last 40 ms or 200 ms, as "
                           "when small writes meet delayed acknowledgements.",
                           stem(VerdictKind::timer), percent(of(v.delayed_ack))),
               0.6,
               {fmt::format("waits of 40 or 200 ms: {}", percent(of(v.delayed_ack)))}};
}

// Other explanations that account for more time than the run queue does.
double best_other_explanation(const Vitals& v) {
  double most = of(v.condition) + of(v.futex);
  for (const VerdictKindRow& row : verdict_kinds()) most = std::max(most, waits_for(v, row.kind));
  return most;
}

// An open loop whose every request was answered, by a target that wants few CPUs, lacks nothing.
bool keeps_up(const Basis& basis) {
  const Workload& load = basis.run.workload;
  if (!load.measured || load.closed_loop || !load.rate) return false;
  const Vitals& v = basis.vitals;
  double wanted = of(v.cpus_used) / std::max(0.01, 1 - of(v.runqueue_of_ready));
  return load.throughput_per_s >= 0.95 * *load.rate && wanted < 0.5 * of(v.usable_cpus, 1);
}

Claim waits_for_cpus(const Basis& basis, const std::string& why) {
  const Vitals& v = basis.vitals;
  return Claim{VerdictKind::scheduler,
               fmt::format("{}: threads that could run are kept waiting {} of the time; "
                           "{}.",
                           stem(VerdictKind::scheduler), percent(of(v.runqueue_of_ready)), why),
               confidence(of(v.runqueue_of_ready), kRunqueue),
               {fmt::format("run-queue {} of ready time", percent(of(v.runqueue_of_ready))),
                fmt::format("host busy {}", percent(of(v.host_busy))), cpu_text(basis)}};
}

MaybeClaim scheduler(const Basis& basis) {
  const Vitals& v = basis.vitals;
  if (of(v.runqueue_of_ready) < kRunqueue || of(v.utilisation) >= kSaturated) return {};
  if (of(v.runqueue) <= best_other_explanation(v)) return {};
  if (keeps_up(basis)) return {};
  bool neighbour = of(v.host_busy) >= kHostSaturated && others_hold_much(basis);
  bool confined = of(v.bound) > 0 && of(v.host_busy, 1) < kHostSaturated;
  if (!neighbour && !confined) return {};
  return waits_for_cpus(basis, neighbour ? others_text(basis, cpus_of_others(v))
                                         : fmt::format("it may use {:.3g} of {:.0f} CPUs",
                                                       of(v.usable_cpus), of(v.host_cpus)));
}

// The load generator, or others, share the machine: the target's own utilisation understates it.
MaybeClaim shared_cpu(const Basis& basis) {
  const Vitals& v = basis.vitals;
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
  // What a stranger takes is not the target's to mend.
  if (strangers_hold_much(v) && of(v.runqueue_of_ready) >= kKeptWaiting) {
    if (scheduler(basis)) return {};  // said already
    return waits_for_cpus(basis, others_text(basis, cpus_of_others(v)));
  }
  std::string others = largest_others(basis.run);
  return cpu_claim(basis,
                   fmt::format("the machine is {} busy, {:.2f} CPUs of it with the target{}{}, and "
                               "its threads are running or ready to run {} of their busy time",
                               percent(of(v.host_busy)), of(v.cpus_used),
                               others.empty() ? "" : ", the rest with ", others,
                               percent(of(v.running) + of(v.runqueue))),
                   0.7);
}

double blocked_of_busy(const Vitals& v) {
  return std::max(0.0, 1 - of(v.running) - of(v.runqueue) - of(v.wakeup));
}

MaybeClaim not_enough_load(const Basis& basis) {
  const Vitals& v = basis.vitals;
  bool calm = of(v.utilisation) < kUnderloaded && of(v.serial_ready) < kCalmThread;
  // Waits of an idle server's few requests are no problem: they are small against the window.
  double blocked_cpus = blocked_of_busy(v) > 0 && of(v.running) > 0
                            ? of(v.cpus_used) * blocked_of_busy(v) / of(v.running)
                            : 0;
  bool waits_little = blocked_of_busy(v) < kLittleBlocked || blocked_cpus < 0.05;
  // Threads that wait for a CPU on a full machine do not wait for requests.
  bool starved = of(v.runqueue_of_ready) >= 0.4 && of(v.host_busy, 1) >= kHostSaturated;
  bool queue = of(v.backlog) > 0.05 || (starved && !keeps_up(basis));
  if (!calm || !waits_little || queue) return {};
  std::string spare =
      free_share(v) >= kRoom
          ? fmt::format("{} of its CPUs are free and its threads wait for work",
                        percent(free_share(v)))
          : fmt::format("its threads wait for work and it uses {} of its CPUs; {}",
                        percent(of(v.utilisation)), others_text(basis, of(v.other_cpus)));
  std::vector<std::string> numbers{cpu_text(basis),
                                   fmt::format("idle {} of thread time", percent(of(v.idle)))};
  bool closed = basis.run.workload.measured && basis.run.workload.closed_loop;
  if (closed && of(v.utilisation) >= 0.05) {
    numbers.push_back(fmt::format("{:.0f} requests in flight", of(v.concurrency)));
    return Claim{VerdictKind::concurrency_limited,
                 fmt::format("{}: with {:.0f} in flight, {}.",
                             stem(VerdictKind::concurrency_limited), of(v.concurrency), spare),
                 confidence(kUnderloaded, std::max(0.01, of(v.utilisation))), numbers};
  }
  return Claim{VerdictKind::underloaded,
               fmt::format("{}: {}.", stem(VerdictKind::underloaded), spare),
               confidence(kUnderloaded, std::max(0.01, of(v.utilisation))), numbers};
}

// Busy time by what a sentence calls its parts, in the order of the kinds of wait.
std::vector<std::pair<double, std::string_view>> parts_of_busy_time(const Vitals& v) {
  std::vector<std::pair<double, std::string_view>> parts{{of(v.running), "running"},
                                                         {of(v.runqueue), "waiting for a CPU"}};
  std::set<std::string_view> counted;  // several kinds may share one number
  for (const BlockKindRow& row : block_kinds()) {
    auto part = std::ranges::find(parts, row.group, &std::pair<double, std::string_view>::second);
    if (part == parts.end()) part = parts.insert(part, {0, row.group});
    if (counted.insert(row.vital).second) part->first += of(find_vital(row.vital)->of(v));
  }
  return parts;
}

MaybeClaim mixed(const Basis& basis) {
  auto parts = parts_of_busy_time(basis.vitals);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (size_t i = 0; i < 3; ++i) {
    text += fmt::format("{}{} {}", i ? ", " : "", parts[i].second, percent(parts[i].first));
  }
  return Claim{VerdictKind::mixed,
               fmt::format("{}: busy time is {}.", stem(VerdictKind::mixed), text),
               0.5,
               {cpu_text(basis)}};
}

}  // namespace

std::vector<Claim> claims(const Basis& basis) {
  using Rule = MaybeClaim (*)(const Basis&);
  static constexpr Rule kRules[]{throttled,  full_accelerator, cpu,   serial_stage,
                                 lock,       one_at_a_time,    disk,  awaited_accelerator,
                                 network,    downstream,       timer, scheduler,
                                 shared_cpu, not_enough_load};
  std::vector<Claim> found;
  for (Rule rule : kRules) {
    if (auto claim = rule(basis)) found.push_back(std::move(*claim));
  }
  drop_what_devices_explain(basis.vitals, found);
  if (found.empty()) found.push_back(*mixed(basis));
  return found;
}

}  // namespace assay::analysis
