// match_rules(): what each rule matched in a run and what no category knows, for people who write
// rules.
//
// In: a Reader and rules. Out: RuleMatches, heaviest first. Failures: the Reader's.
#pragma once

#include <string>
#include <vector>

#include "analysis/rules/rule_set.h"
#include "base/result.h"
#include "run/reader.h"

namespace assay::analysis {

struct RuleMatch {
  std::string rule;  // "category subsystem/malloc"
  std::string name;
  size_t functions = 0;   // distinct functions of the run
  double cpu_share = 0;   // owned (categories), or on the stack (others)
  double wait_share = 0;  // of all blocked and idle time, on the stack
  std::vector<std::string> examples;
};

struct Unclassified {
  std::string function;
  std::string module;
  double share = 0;  // of CPU time, self
};

struct RuleMatches {
  std::vector<RuleMatch> matched;
  std::vector<std::string> silent;         // rules that matched nothing
  std::vector<Unclassified> unclassified;  // functions that no subsystem rule knows
  double unclassified_share = 0;           // of CPU time, the program's own code not counted
};

Result<RuleMatches> match_rules(const run::Reader& reader, const RuleSet& rules);

}  // namespace assay::analysis
