// When the data cannot carry a verdict, and what to do about it.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "analysis/verdict/verdict.h"
#include "base/units.h"

namespace assay::analysis {
namespace {

constexpr double kLost = 0.01;
constexpr double kUnresolved = 0.10;
constexpr double kErrors = 0.01;
constexpr double kDrift = 0.10;
constexpr double kIdleBelow = 0.05;       // utilisation at which samples say nothing anyway
constexpr double kWidestHalf = 0.10;      // half of an interval that a CPU claim may have
constexpr double kShortest = 0.5;         // seconds
constexpr double kServingProcess = 0.10;  // of the CPU time
constexpr double kLongEnoughBeforeItsEnd = 3;  // seconds

// The facts of processes that do the work; a small helper's build does not matter.
std::set<std::string> serving_scopes(const Measured& run) {
  std::set<std::string> scopes;
  for (const ProcessTime& process : run.processes) {
    auto share = static_cast<double>(process.time.running_ns());
    if (share >= kServingProcess * static_cast<double>(run.thread_time.running_ns())) {
      scopes.insert(fmt::format("process {}", process.process.id.value));
    }
  }
  return scopes;
}

void add_build(const Measured& run, const std::vector<Diagnosis>& findings,
               std::vector<Withheld>& reasons) {
  std::set<std::string> scopes = serving_scopes(run);
  std::set<std::string> said;
  auto say = [&](std::string why, std::string remedy) {
    if (said.insert(why).second) reasons.push_back({std::move(why), std::move(remedy)});
  };
  for (const model::Fact& fact : run.facts) {
    if (!scopes.contains(fact.scope)) continue;
    if (fact.key == "build" && fact.value == "debug") {
      say("the program is a debug build (compiled without optimisation)", "rebuild with -O2 -g");
    }
    if (fact.key == "sanitizers" && !fact.value.empty()) {
      say(fmt::format("the program runs under sanitizers ({})", fact.value),
          "rebuild without -fsanitize");
    }
    if (fact.key == "debug_containers" && fact.value == "yes") {
      say("the program uses checked containers (_GLIBCXX_DEBUG)",
          "rebuild without -D_GLIBCXX_DEBUG");
    }
  }
  for (const Diagnosis& finding : findings) {
    if (finding.withholds) say(finding.title, finding.recommendation);
  }
}

// A profile made by another tool: CPU samples without waits cannot tell a server that computes from
// one that waits, and sums without times cannot tell a window from a day.
bool add_import(const Measured& run, std::vector<Withheld>& reasons) {
  if (!is_imported(run.run_kind)) return false;
  const std::string remedy = "record the server itself";
  auto says = [&](std::string_view key, std::string_view value) {
    return std::ranges::any_of(run.facts, [&](const model::Fact& fact) {
      return fact.scope == "import" && fact.key == key && fact.value == value;
    });
  };
  if (is_heap_alone(run.run_kind)) {
    reasons.push_back(
        {"the imported profile is one of the heap: it contains no time", remedy, true});
  } else if (is_of_counts(run.run_kind)) {
    const std::string& unit = run.counted_unit;
    reasons.push_back({fmt::format("the imported profile counts {}, not time", unit),
                       unit == "bytes" || unit == "objects" ? remedy + ", or assay heap" : remedy,
                       true});
  } else if (says("meaning", "unsaid")) {
    reasons.push_back(
        {"the imported stacks do not say whether they are time on the CPU or time "
         "blocked; they are shown as CPU time",
         remedy, true});
  } else if (says("waits", "absent") || run.quality.waits == 0) {
    reasons.push_back(
        {"the imported profile says nothing of time off the CPU: it shows where CPU time goes, "
         "not what holds the server back",
         remedy, true});
  } else if (run.on_cpu.samples == 0) {
    reasons.push_back(
        {"the imported profile says nothing of time on the CPU: it shows what threads wait for, "
         "not how busy the server is",
         remedy, true});
  } else if (says("times", "absent")) {
    reasons.push_back({"the imported profile has sums without times", remedy, true});
  }
  return !reasons.empty();
}

void add_load(const Basis& basis, std::vector<Withheld>& reasons) {
  const Workload& load = basis.run.workload;
  if (load.present && !load.ended.empty()) {
    reasons.push_back({fmt::format("the load did not cover the capture ({})", load.ended),
                       "fix the load, or record a shorter window"});
  }
  if (!load.measured) return;
  if (load.generator_saturated) {
    reasons.push_back({"the load generator was itself the limit",
                       "drive the load from another machine, or with more connections"});
  }
  double errors = basis.vitals.errors.value_or(0);
  if (errors > kErrors) {
    reasons.push_back({fmt::format("{} of the requests failed", format_percent(errors)),
                       "fix the errors first: failing requests do different work"});
  }
  if (load.surely_drifted_share > kDrift) {
    reasons.push_back({fmt::format("throughput changed by {} during the window",
                                   format_percent(load.drift_share)),
                       "record longer, after a --warmup"});
  }
}

// A server that ended while it was looked at did not serve: what it did was to end. A command that
// Assay started ran as long as it wanted to.
void add_ending(const Basis& basis, std::vector<Withheld>& reasons) {
  const Quality& q = basis.run.quality;
  bool died = q.end_reason == "target exited" && !q.ran_to_its_end;
  if (!died || basis.vitals.window_s.value_or(0) >= kLongEnoughBeforeItsEnd) return;
  reasons.push_back({fmt::format("the target ended {:.1f} s after the capture began",
                                 basis.vitals.window_s.value_or(0)),
                     "find out why it ended, and record it while it serves"});
}

}  // namespace

std::vector<Withheld> reasons_to_withhold(const Basis& basis,
                                          const std::vector<Diagnosis>& findings,
                                          VerdictKind kind) {
  const Measured& run = basis.run;
  const Vitals& v = basis.vitals;
  const Quality& q = run.quality;
  std::vector<Withheld> reasons;
  if (add_import(run, reasons)) return reasons;
  if (is_heap_alone(run.run_kind)) {
    reasons.push_back({"the run is of the heap alone: it contains no time",
                       "record time as well: assay record --heap", true});
    return reasons;
  }
  if (run.threads.empty() || v.window_s.value_or(0) < kShortest) {
    reasons.push_back(
        {"the window is too short or empty", "record for at least a few seconds", true});
    return reasons;
  }
  add_ending(basis, reasons);
  add_build(run, findings, reasons);
  add_load(basis, reasons);
  if (q.lost_share > kLost) {
    reasons.push_back({fmt::format("{} of the records were lost", format_percent(q.lost_share)),
                       "record with a lower rate, for example --freq 49"});
  }
  bool ran = v.utilisation.value_or(0) >= kIdleBelow;
  // Drivers have no names inside; what spins there is known by the call that it is in.
  double unresolved = q.on_cpu.unresolved - v.accelerator_cpu.value_or(0);
  if (ran && unresolved > kUnresolved) {
    reasons.push_back({fmt::format("{} of the CPU time is in functions without names",
                                   format_percent(unresolved)),
                       "install debug symbols, or build with -g and without stripping"});
  }
  if (ran && describe(kind).rests_on_samples) {
    // The widest interval that a threshold of the rules could fall into.
    Estimate worst = wilson(0.4, run.on_cpu.effective_samples);
    if ((worst.high - worst.low) / 2 > kWidestHalf) {
      reasons.push_back({fmt::format("{} samples give shares no better than ±{:.0f} %",
                                     run.on_cpu.samples, (worst.high - worst.low) * 50),
                         "record longer, or with a higher --freq"});
    }
  }
  if (!ran && run.on_cpu.samples == 0 && run.thread_time.running_ns() * 20 > run.window_ns) {
    reasons.push_back({"threads ran but no sample was taken", "assay doctor"});
  }
  return reasons;
}

Verdict decide(const Basis& basis, const std::vector<Diagnosis>& findings) {
  std::vector<Claim> found = claims(basis);
  Verdict verdict;
  static_cast<Claim&>(verdict) = found.front();
  verdict.secondary.assign(found.begin() + 1, found.end());
  std::vector<Withheld> reasons = reasons_to_withhold(basis, findings, verdict.kind);
  if (!reasons.empty()) {
    bool no_guess = std::ranges::any_of(reasons, &Withheld::rules_out_guess);
    verdict.secondary = no_guess ? std::vector<Claim>() : std::move(found);
    verdict.kind = VerdictKind::withheld;
    verdict.confidence = 0;
    verdict.numbers.clear();
    verdict.sentence = fmt::format("{}: ", describe(verdict.kind).stem);
    for (size_t i = 0; i < reasons.size(); ++i) {
      verdict.sentence += (i == 0 ? "" : "; ") + reasons[i].why;
      verdict.withheld.push_back(reasons[i].why);
      verdict.remedies.push_back(reasons[i].remedy);
    }
    verdict.sentence += ".";
  } else if (!basis.run.workload.measured) {
    verdict.confidence = std::min(verdict.confidence, 0.85);
  }
  NextStep next = next_step(basis.run, verdict.kind, verdict.remedies);
  verdict.next_step = std::move(next.words);
  verdict.next_command = std::move(next.command);
  return verdict;
}

}  // namespace assay::analysis
