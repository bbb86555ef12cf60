#include "analysis/verdict/one_at_a_time.h"

#include <fmt/format.h>

#include "base/units.h"

namespace assay::analysis {
namespace {

// Threads that know nothing of one another are all asleep 37 % of the time when one of them runs on
// average. So little of it, and hardly ever two, is no chance.
constexpr double kActive = 0.85;     // of the window, with a thread that runs or could run
constexpr double kOnlyOne = 0.70;    // of that, with only one; by chance it is a third
constexpr double kOneRuns = 0.90;    // of the time that any runs
constexpr double kOneCpu = 1.05;     // more than one cannot be used one at a time
constexpr double kOneThread = 0.70;  // of the running time: that thread is a stage of its own
constexpr double kSeveral = 0.50;    // of the window, with several threads at work
constexpr double kInFlight = 2;

}  // namespace

std::optional<Claim> one_at_a_time(const Basis& basis) {
  const Vitals& v = basis.vitals;
  if (!v.active || !v.one_at_a_time || v.usable_cpus.value_or(1) < 2) return {};
  const Parallelism& found = basis.run.parallelism;
  double runs = Parallelism::at_least(found.running, 1);
  double one_runs = runs > 0 ? 1 - Parallelism::at_least(found.running, 2) / runs : 0;
  if (*v.active < kActive || one_runs < kOneRuns) return {};
  // Threads that could run and do not lack a CPU; those that must wait for one another sleep.
  if (*v.one_at_a_time < kOnlyOne || v.cpus_used.value_or(0) > kOneCpu) return {};
  if (v.busiest_thread.value_or(1) >= kOneThread) return {};
  bool in_flight = v.concurrency.value_or(0) >= kInFlight;
  double several = v.several_at_work.value_or(0);
  if (!in_flight && several < kSeveral) return {};
  std::string others =
      in_flight ? fmt::format("{:.0f} requests are in flight", *v.concurrency)
                : fmt::format("several have work {} of the time", format_percent(several));
  std::vector<std::string> numbers{
      fmt::format("of the time that any thread runs, only one does {}", format_percent(one_runs)),
      fmt::format("of the time that any runs or could run, only one does {}",
                  format_percent(*v.one_at_a_time)),
      fmt::format("the busiest thread has {} of the running time",
                  format_percent(*v.busiest_thread))};
  return Claim{
      VerdictKind::serial_stage,
      fmt::format("{}: {} threads take turns; one of them runs or could run {} of the "
                  "time, and hardly ever do two run at once, while {} and {:.3g} CPUs may be used.",
                  describe(VerdictKind::serial_stage).stem, found.threads,
                  format_percent(*v.active), others, *v.usable_cpus),
      0.75, numbers};
}

}  // namespace assay::analysis
