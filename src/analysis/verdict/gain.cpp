#include "analysis/verdict/gain.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/units.h"

namespace assay::analysis {
namespace {

constexpr double kMost = 9;  // beyond ten times as much the law says nothing useful

double amdahl(double f) {
  f = std::clamp(f, 0.0, 0.9);
  return f / (1 - f);
}

// What the next resource allows when the present limit is gone.
double next_limit(const Vitals& v, VerdictKind verdict) {
  if (verdict == VerdictKind::serial_stage) {
    double next = std::max(v.serial_next.value_or(0), v.utilisation.value_or(0));
    return next > 0 ? 1 / next - 1 : kMost;
  }
  if (describe(verdict).limit == Limit::waiting) {
    double used = std::max(v.utilisation.value_or(0), 0.05);
    return std::max(0.0, 1 / used - 1);
  }
  return kMost;
}

Gain none(std::string why) {
  return {0.0, fmt::format("none: optimising this cannot raise throughput, {}", why)};
}

Gain at_most(double bound, std::string_view remark) {
  bound = std::min(bound, kMost);
  if (bound < 0.005) return none("the next resource is the limit already");
  return {bound, fmt::format("at most +{:.0f} % throughput (upper bound{})", bound * 100, remark)};
}

// With all the CPUs but the generator's the target's threads would, at best, no longer queue; they
// cannot use more CPUs than that either.
Gain gain_of_cpus(const Vitals& v) {
  double queued = amdahl(v.runqueue_of_ready.value_or(0));
  double left = v.host_cpus.value_or(0) - v.generator_cpus.value_or(0);
  double used = v.cpus_used.value_or(0);
  double most = left > 0 && used > 0 ? std::max(0.0, left / used - 1) : kMost;
  return at_most(std::min(queued, most), "; if the target had all CPUs");
}

// In a closed loop a shorter answer is the next request sooner: X = N / R.
Gain gain_of_shorter_answers(const Vitals& v, const Diagnosis& f) {
  double latency_us = v.latency_ms.value_or(0) * 1000;
  double cpu_us = v.cpu_us_per_request.value_or(0);
  if (f.of != ShareOf::cpu_time || latency_us <= 0)
    return none("only more concurrent requests would; it lowers latency");
  double f_of_latency = std::min(0.9, f.share.share * cpu_us / latency_us);
  return at_most(amdahl(f_of_latency), "; by shorter answers at the same concurrency");
}

Gain gain_of_cpu_time(const Vitals& v, VerdictKind verdict, const Diagnosis& f) {
  if (f.of != ShareOf::cpu_time) return none("it is not at the bottleneck, which is the CPU");
  double share = f.share.share;
  if (verdict == VerdictKind::serial_stage && v.serial_on.value_or(0) > 0) {
    share = std::min(1.0, share * v.cpus_used.value_or(0) / *v.serial_on);
  }
  double bound = amdahl(share), next = next_limit(v, verdict);
  std::string_view remark = bound > next ? "; then the next resource is the limit"
                            : verdict == VerdictKind::scheduler ? "; with the CPUs it gets now"
                                                                : "";
  return at_most(std::min(bound, next), remark);
}

Gain gain_of_waiting(const Vitals& v, VerdictKind verdict, const Diagnosis& f) {
  if (f.of != ShareOf::busy_time)
    return none("it is not at the bottleneck; it lowers the CPU used per request");
  double bound = amdahl(f.share.share), next = next_limit(v, verdict);
  return at_most(std::min(bound, next), bound > next ? "; then the CPUs are the limit" : "");
}

Gain gain_of(const Vitals& v, VerdictKind verdict, const Diagnosis& f) {
  if (f.cause == Cause::memory)
    return {std::nullopt, "unknown: memory use does not bound throughput"};
  if (f.withholds) return {std::nullopt, "unknown: it makes the other numbers unreliable"};
  if (verdict == VerdictKind::withheld)
    return {std::nullopt, "unknown while the verdict is withheld"};
  if (verdict == VerdictKind::scheduler && f.explains == verdict) return gain_of_cpus(v);
  if (f.of == ShareOf::nothing) return {std::nullopt, "cannot be computed from this run"};
  if (verdict == VerdictKind::concurrency_limited) return gain_of_shorter_answers(v, f);
  switch (describe(verdict).limit) {
    case Limit::none:
      return {std::nullopt, "cannot be bounded: no single resource limits throughput"};
    case Limit::load:
      return none("the server waits for requests; it can lower latency and cost");
    case Limit::cpu:
      return gain_of_cpu_time(v, verdict, f);
    case Limit::waiting:
      return gain_of_waiting(v, verdict, f);
  }
  return {};
}

}  // namespace

std::vector<Gain> gains_of(const Vitals& vitals, VerdictKind verdict,
                           const std::vector<Diagnosis>& findings) {
  std::vector<Gain> gains;
  for (const Diagnosis& finding : findings) gains.push_back(gain_of(vitals, verdict, finding));
  return gains;
}

std::vector<Finding> ranked(std::vector<Diagnosis> findings, std::vector<Gain> gains) {
  std::vector<Finding> all;
  for (size_t i = 0; i < findings.size() && i < gains.size(); ++i) {
    all.push_back({std::move(findings[i]), std::move(gains[i])});
  }
  auto key = [](const Finding& f) {
    return std::tuple(!f.withholds, -f.gain.upper_bound.value_or(-0.001), -f.share.share);
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Finding& a, const Finding& b) { return key(a) < key(b); });
  return all;
}

}  // namespace assay::analysis
