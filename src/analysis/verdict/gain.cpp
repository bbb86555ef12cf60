#include "analysis/verdict/gain.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "analysis/verdict/verdict.h"
#include "base/units.h"

namespace assay::analysis {
namespace {

constexpr double kMost = 9;  // beyond ten times as much the law says nothing useful

double amdahl(double f) {
  f = std::clamp(f, 0.0, 0.9);
  return f / (1 - f);
}

// What the next resource allows when the present limit is gone.
double next_limit(const Report& report) {
  const Vitals& v = report.vitals;
  if (report.verdict.kind == "serial-stage") {
    double next = std::max(v.serial_next.value_or(0), v.utilisation.value_or(0));
    return next > 0 ? 1 / next - 1 : kMost;
  }
  if (is_waiting_kind(report.verdict.kind)) {
    double used = std::max(v.utilisation.value_or(0), 0.05);
    return std::max(0.0, 1 / used - 1);
  }
  return kMost;
}

struct Gain {
  std::optional<double> bound;
  std::string text;
};

Gain none(std::string why) {
  return {0.0, fmt::format("none: optimising this cannot raise throughput, {}", why)};
}

Gain at_most(double bound, std::string_view remark) {
  bound = std::min(bound, kMost);
  if (bound < 0.005) return none("the next resource is the limit already");
  return {bound, fmt::format("at most +{:.0f} % throughput (upper bound{})", bound * 100, remark)};
}

// The findings that say why threads wait for a CPU.
bool keeps_from_cpus(const Diagnosis& f) {
  return f.id == "noisy-neighbour" || f.id == "confined-to-few-cpus";
}

// With all the CPUs but the generator's the target's threads would, at best, no longer queue; they
// cannot use more CPUs than that either.
Gain gain_of_cpus(const Vitals& v) {
  double queued = amdahl(v.runqueue_of_ready.value_or(0));
  double left = v.host_cpus.value_or(0) - v.generator_cpus.value_or(0);
  double used = v.cpus_used.value_or(0);
  double most = left > 0 && used > 0 ? std::max(0.0, left / used - 1) : kMost;
  return at_most(std::min(queued, most), "; were the CPUs its own");
}

Gain gain_of(const Report& report, const Diagnosis& f) {
  const std::string& kind = report.verdict.kind;
  const Vitals& v = report.vitals;
  if (f.cause == "memory") return {std::nullopt, "memory: no bound on throughput follows from it"};
  if (f.withholds) return {std::nullopt, "unknown: it makes the other numbers unreliable"};
  if (kind == "withheld") return {std::nullopt, "unknown while the verdict is withheld"};
  if (kind == "scheduler" && keeps_from_cpus(f)) return gain_of_cpus(v);
  bool on_cpu = f.of == "CPU time", waiting = f.of == "busy time";
  if (f.of.empty()) return {std::nullopt, "cannot be computed from this run"};
  if (kind == "mixed") {
    return {std::nullopt, "cannot be bounded: no single resource limits throughput"};
  }
  if (kind == "underloaded")
    return none("the server waits for requests; it can lower latency and cost");
  if (kind == "concurrency-limited") {
    // In a closed loop a shorter answer is the next request sooner: X = N / R.
    double latency_us = v.latency_ms.value_or(0) * 1000;
    double cpu_us = v.cpu_us_per_request.value_or(0);
    if (!on_cpu || latency_us <= 0) return none("more requests at once would; this lowers latency");
    double f_of_latency = std::min(0.9, f.share.share * cpu_us / latency_us);
    return at_most(amdahl(f_of_latency), "; by shorter answers at the same concurrency");
  }
  if (is_cpu_kind(kind)) {
    if (!on_cpu) return none("it is not on the bottleneck, which is the CPU");
    double share = f.share.share;
    if (kind == "serial-stage" && v.serial_on.value_or(0) > 0) {
      share = std::min(1.0, share * v.cpus_used.value_or(0) / *v.serial_on);
    }
    double bound = amdahl(share), next = next_limit(report);
    std::string_view remark = bound > next          ? "; then the next resource is the limit"
                              : kind == "scheduler" ? "; with as few CPUs as it gets"
                                                    : "";
    return at_most(std::min(bound, next), remark);
  }
  if (is_waiting_kind(kind)) {
    if (!waiting) return none("it is not on the bottleneck; it lowers the CPU used per request");
    double bound = amdahl(f.share.share), next = next_limit(report);
    return at_most(std::min(bound, next), bound > next ? "; then the CPUs are the limit" : "");
  }
  return {std::nullopt, ""};
}

}  // namespace

void add_gains(Report& report) {
  for (Diagnosis& finding : report.findings) {
    Gain gain = gain_of(report, finding);
    finding.gain_upper_bound = gain.bound;
    finding.gain_text = std::move(gain.text);
  }
}

void sort_findings(Report& report) {
  std::stable_sort(
      report.findings.begin(), report.findings.end(), [](const Diagnosis& a, const Diagnosis& b) {
        auto key = [](const Diagnosis& f) {
          return std::tuple(!f.withholds, -f.gain_upper_bound.value_or(-0.001), -f.share.share);
        };
        return key(a) < key(b);
      });
}

}  // namespace assay::analysis
