// decide(): one verdict from a run's numbers, or the statement that none can be given.
//
// The rules stand in verdict_rules.cpp, in order; the first that holds is the verdict, those after
// it are secondary. withheld.cpp says when the data cannot carry one. In: what was measured, its
// vitals, and the findings (those that make a build unfit withhold the verdict). Out: Verdict.
// Pure. docs/verdict.md explains the rules and what was calibrated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/report.h"

namespace assay::analysis {

// What a verdict rests on. Both must outlive it.
struct Basis {
  const Measured& run;
  const Vitals& vitals;
};

Verdict decide(const Basis& basis, const std::vector<Diagnosis>& findings);

// The rules alone, in order: every claim that holds.
std::vector<Claim> claims(const Basis& basis);

// The rules about accelerators (accelerator_rule.cpp): one that is full or that threads spin for,
// and one that threads sleep for. Then what is said of CPUs and load that such a device explains is
// no claim of its own.
std::optional<Claim> full_accelerator(const Basis& basis);
std::optional<Claim> awaited_accelerator(const Basis& basis);
void drop_what_devices_explain(const Vitals& vitals, std::vector<Claim>& found);

struct Withheld {
  std::string why;
  std::string remedy;
  bool rules_out_guess = false;  // nor can it be said what the verdict would be
};
// Why a verdict of this kind cannot be given; empty when it can.
std::vector<Withheld> reasons_to_withhold(const Basis& basis,
                                          const std::vector<Diagnosis>& findings, VerdictKind kind);

// What to try next.
struct NextStep {
  std::string words;
  std::string command;
};
NextStep next_step(const Measured& run, VerdictKind kind, const std::vector<std::string>& remedies);

// What people usually suspect and the numbers clear.
std::vector<NotBottleneck> cleared(const Basis& basis, VerdictKind verdict);

}  // namespace assay::analysis
