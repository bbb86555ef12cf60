// cleared(): the usual suspects that this run's numbers clear.
#include <algorithm>

#include <fmt/format.h>

#include "analysis/verdict/verdict.h"
#include "base/units.h"

namespace assay::analysis {
namespace {

constexpr double kSmall = 0.05;  // the interval's upper end must be below
constexpr uint64_t kEnoughSamples = 100;

void clear_waits(const Vitals& v, std::vector<NotBottleneck>& list) {
  struct Row {
    const char* what;
    std::optional<double> share;
  };
  std::optional<double> network;
  if (v.receive) network = *v.receive + v.send.value_or(0);
  for (const Row& row : {Row{"waiting for locks", v.lock}, Row{"waiting for disks", v.disk},
                         Row{"waiting for the network inside requests", network}}) {
    if (!row.share || *row.share >= kSmall) continue;
    list.push_back(
        {row.what, fmt::format("{} of busy time", format_percent(*row.share)), *row.share});
  }
}

// Of CPU time: what the categories of a suspect own.
double share_of(const Measured& run, UsualSuspect suspect) {
  double share = 0;
  for (const CategoryShare& row : run.categories) {
    bool belongs = row.category.breakdown == kSubsystem && row.category.suspect == suspect;
    if (belongs) share += row.share.share;
  }
  return share;
}

}  // namespace

std::vector<NotBottleneck> cleared(const Basis& basis, VerdictKind verdict) {
  std::vector<NotBottleneck> list;
  if (verdict == VerdictKind::withheld) return list;
  clear_waits(basis.vitals, list);
  const OnCpuProfile& on_cpu = basis.run.on_cpu;
  if (on_cpu.samples < kEnoughSamples) return list;
  Limit limit = describe(verdict).limit;
  bool cpu_is_no_limit = limit == Limit::waiting || limit == Limit::load;
  for (const UsualSuspectRow& suspect : kUsualSuspects) {
    double share = share_of(basis.run, suspect.kind);
    Estimate e = wilson(std::min(1.0, share), on_cpu.effective_samples);
    std::string figure = fmt::format("{} of CPU time ({:.1f}–{:.1f} %)", format_percent(e.share),
                                     e.low * 100, e.high * 100);
    std::string what(suspect.name);
    if (e.high < kSmall && share > 0) {
      list.push_back({what, figure, share});
    } else if (share >= kSmall && cpu_is_no_limit) {
      list.push_back({what, figure + ", but the CPU is not what limits throughput", share});
    }
  }
  return list;
}

}  // namespace assay::analysis
