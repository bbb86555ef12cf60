// decide(): one verdict from a run's numbers, or the statement that none can be given.
//
// The rules stand in verdict_rules.cpp, in order; the first that holds is the verdict, those after
// it are secondary. withheld.cpp says when the data cannot carry one. In: a Report whose vitals,
// locks, categories and findings (for the validity of the build) are filled. Out: Verdict. Pure.
// docs/verdict.md explains the rules and what was calibrated.
#pragma once

#include <string_view>

#include "analysis/profile/imported_unit.h"
#include "analysis/report.h"

namespace assay::analysis {

Verdict decide(const Report& report);

// The rules alone, in order: every claim that holds.
std::vector<Claim> claims(const Report& report);

// Whether another tool made the profile and `assay import` brought it in.
inline bool is_imported(const Report& report) {
  return report.info.backend.starts_with("import");
}

inline std::string imported_unit(const Report& report) {
  return imported_unit(report.info, report.facts);
}

// What a kind of verdict says is short: time on the CPUs, or what threads wait for. The other kinds
// name neither.
bool is_cpu_kind(std::string_view kind);
bool is_waiting_kind(std::string_view kind);

struct Withheld {
  std::string why;
  std::string remedy;
  bool rules_out_guess = false;  // nor can it be said what the verdict would be
};
// Why a verdict of this kind cannot be given; empty when it can.
std::vector<Withheld> reasons_to_withhold(const Report& report, const std::string& kind);

// What to try next, in words and as a command.
void add_next_step(const Report& report, Verdict& verdict);

}  // namespace assay::analysis
