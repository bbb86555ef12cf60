#include "analysis/verdict/gain.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "analysis/verdict/predicted_gain.h"
#include "base/units.h"

namespace assay::analysis {
namespace {

// Where more than this many times as much would fit, what is left was too small to be measured.
constexpr double kMostTimes = 20;
// Beyond this a queue is longer than the law that is used for it knows.
constexpr double kBusiest = 0.9;

// Throughput when a share f of the demand at the bottleneck goes, if nothing else changed: good
// enough to put findings in order, and no bound.
double amdahl(double f) {
  f = std::clamp(f, 0.0, 0.9);
  return f / (1 - f);
}

Gain none(std::string why) {
  return {0.0, fmt::format("none: optimising this cannot raise throughput, {}", why), std::nullopt, 0};
}

Gain unbounded(std::string_view why, double worth) {
  return {std::nullopt, fmt::format("not bounded by this run: {}", why), std::nullopt, worth};
}

// `times`: how many times the present throughput what is left allows.
Gain at_most(double times, std::string_view remark, double worth) {
  if (times > kMostTimes)
    return unbounded(
        fmt::format("what is left would allow more than {:.0f} times as much", kMostTimes), worth);
  double bound = std::max(0.0, times - 1);
  return {bound, fmt::format("at most +{:.0f} % throughput (upper bound{})", bound * 100, remark),
          std::nullopt, worth};
}

// How many times as much the CPUs allow when `left` of the CPU time that a request takes now stays.
double times_by_cpus(const Vitals& v, double left) {
  double used = std::min(1.0, v.utilisation.value_or(1)) * std::max(0.0, left);
  return used > 0 ? std::max(1.0, 1 / used) : 2 * kMostTimes;
}

// A wait takes along the switches, wake-ups and system calls that belong to it. How much of the
// kernel's time that is, is not known: at most all of it.
double left_without_a_wait(const Vitals& v) {
  return 1 - v.kernel_cpu.value_or(0);
}

// With all the CPUs but the generator's.
Gain gain_of_cpus(const Vitals& v) {
  double worth = amdahl(v.runqueue_of_ready.value_or(0));
  double left = v.host_cpus.value_or(0) - v.generator_cpus.value_or(0);
  double used = v.cpus_used.value_or(0);
  if (left <= 0 || used <= 0) return unbounded("how many CPUs it could have is not known", worth);
  return at_most(left / used, "; if the target had all CPUs", worth);
}

// In a closed loop a shorter answer is the next request sooner: X = N / R. Time on a busy thread
// counts with the queue behind it.
Gain gain_of_shorter_answers(const Vitals& v, const Diagnosis& f) {
  double latency_us = v.latency_ms.value_or(0) * 1000;
  double busy_us = f.of == ShareOf::cpu_time
                       ? v.cpu_us_per_request.value_or(0)
                       : latency_us * (1 - v.unaccounted.value_or(0));
  if (latency_us <= 0 || busy_us <= 0)
    return unbounded("how long a request takes is not known", 0);
  double worth = amdahl(f.share.share * busy_us / latency_us);
  double left = f.of == ShareOf::cpu_time ? 1 - f.share.high : left_without_a_wait(v);
  double by_cpus = times_by_cpus(v, left);
  constexpr std::string_view kRemark = "; by shorter answers at the same concurrency";
  if (f.of != ShareOf::cpu_time) return at_most(by_cpus, kRemark, worth);
  double queue =
      1 - std::min(kBusiest, std::max(v.utilisation.value_or(0), v.serial_ready.value_or(0)));
  double gone = f.share.high * busy_us / queue / latency_us;
  double by_latency = gone < 0.95 ? 1 / (1 - gone) : by_cpus;
  return at_most(std::min(by_latency, by_cpus), kRemark, worth);
}

Gain gain_at_a_stage(const Vitals& v, const Diagnosis& f) {
  double on = v.serial_on.value_or(0);
  if (on <= 0) return unbounded("how busy the stage is, is not known", 0);
  bool is_cpu = f.of == ShareOf::cpu_time;
  double of_stage = v.cpus_used.value_or(on) / on;  // CPU seconds of all threads to one of its own
  double gone = is_cpu ? std::min(1.0, f.share.high * of_stage) : v.kernel_cpu.value_or(0);
  double worth = is_cpu ? amdahl(std::min(1.0, f.share.share * of_stage)) : 0;
  double next = std::max(v.serial_next.value_or(0), v.utilisation.value_or(0) * (1 - gone));
  double by_stage = gone < 1 ? 1 / (on * (1 - gone)) : 2 * kMostTimes;
  double by_next = next > 0 ? 1 / next : 2 * kMostTimes;
  return at_most(std::min(by_stage, by_next),
                 by_stage > by_next ? "; then the next resource is the limit" : "", worth);
}

Gain gain_of_cpu_time(const Vitals& v, VerdictKind verdict, const Diagnosis& f) {
  if (verdict == VerdictKind::serial_stage) return gain_at_a_stage(v, f);
  if (f.of != ShareOf::cpu_time)
    return at_most(times_by_cpus(v, left_without_a_wait(v)),
                   "; the CPUs are the limit, and a wait takes little CPU time along", 0);
  double worth = amdahl(f.share.share);
  // Where more is done at once, a request takes fewer system calls and wake-ups.
  double left = std::max(0.0, 1 - f.share.high - f.cpu_along) * (1 - v.kernel_cpu.value_or(0));
  if (verdict == VerdictKind::scheduler)
    return at_most(1 / std::max(0.01, left), "; with the CPUs it gets now", worth);
  return at_most(times_by_cpus(v, left), "", worth);
}

Gain gain_of_waiting(const Vitals& v, const Diagnosis& f) {
  if (f.of != ShareOf::busy_time)
    return unbounded("it lowers the CPU time per request, and helps where it makes waits shorter",
                     0);
  return at_most(times_by_cpus(v, left_without_a_wait(v)), "; then the CPUs are the limit",
                 amdahl(f.share.share));
}

// What leaves the device's work as it is cannot make it answer more than it does when it never rests.
Gain gain_beside_a_device(const Vitals& v) {
  return at_most(1 / std::max(0.01, *v.accelerator_busy), "; the device is the limit", 0);
}

Gain gain_of(const Vitals& v, VerdictKind verdict, const Diagnosis& f) {
  if (f.cause == Cause::memory)
    return {std::nullopt, "unknown: memory use does not bound throughput", std::nullopt, 0};
  if (f.withholds) return {std::nullopt, "unknown: it makes the other numbers unreliable", std::nullopt, 0};
  if (verdict == VerdictKind::withheld)
    return {std::nullopt, "unknown while the verdict is withheld", std::nullopt, 0};
  if (verdict == VerdictKind::scheduler && f.explains == verdict) return gain_of_cpus(v);
  if (f.of == ShareOf::nothing) return {std::nullopt, "cannot be computed from this run", std::nullopt, 0};
  if (f.wait == BlockKind::accelerator)
    return unbounded("how much less the device could do is not known", amdahl(f.share.share));
  if (verdict == VerdictKind::accelerator && v.accelerator_busy) return gain_beside_a_device(v);
  if (verdict == VerdictKind::concurrency_limited) return gain_of_shorter_answers(v, f);
  switch (describe(verdict).limit) {
    case Limit::none:
      return unbounded("no single resource limits throughput", amdahl(f.share.share));
    case Limit::load:
      if (!v.open_loop || *v.open_loop == 0)
        return unbounded("the server waits for requests; it can lower latency and cost", 0);
      return none("the server waits for requests; it can lower latency and cost");
    case Limit::cpu:
      return gain_of_cpu_time(v, verdict, f);
    case Limit::waiting:
      return gain_of_waiting(v, f);
  }
  return {};
}

}  // namespace

std::vector<Gain> gains_of(const GainBasis& basis, const std::vector<Diagnosis>& findings) {
  std::vector<Gain> gains;
  ServerModel model(basis.demands);
  for (const Diagnosis& finding : findings) {
    Gain gain = gain_of(basis.vitals, basis.verdict, finding);
    add_prediction(basis, model, finding, gain);
    gains.push_back(std::move(gain));
  }
  return gains;
}

std::vector<Finding> ranked(std::vector<Diagnosis> findings, std::vector<Gain> gains) {
  std::vector<Finding> all;
  for (size_t i = 0; i < findings.size() && i < gains.size(); ++i) {
    all.push_back({std::move(findings[i]), std::move(gains[i])});
  }
  auto key = [](const Finding& f) {
    return std::tuple(!f.withholds, -f.gain.worth, -f.share.share);
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Finding& a, const Finding& b) { return key(a) < key(b); });
  return all;
}

}  // namespace assay::analysis
