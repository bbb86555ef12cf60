// Detectors: rules/detectors over one run become findings with their evidence.
//
// A CPU finding is the time of the stacks that hold the rule's functions, each sample once;
// findings overlap one another. A waiting finding is blocked time of the serving pools, never idle.
// A finding needs its share above the rule's threshold and the lower end of its interval above two
// thirds of it. In: rules, the passes' sums, what was measured and its vitals. Out: findings
// without their gains (gain.h). `rules`, `tree`, `features` and `categories` must outlive it.
// Failures: none.
#pragma once

#include <string>
#include <vector>

#include "analysis/analyse.h"
#include "analysis/profile/categories.h"
#include "analysis/report.h"
#include "analysis/rules/stack_features.h"

namespace assay::analysis {

class DetectorSets {
 public:
  DetectorSets(const RuleSet& rules, NameSets& sets);
  struct Row {
    const DetectorRule* rule;
    SetIndex names, under;
  };
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
};

struct DetectorInput {
  const Measured& run;
  const Vitals& vitals;
  const CallTree& tree;
  const StackFeatures& features;
  const Categories& categories;
  std::vector<PathWeight> cpu;
  std::vector<WaitWeight> waits;  // of the serving pools
  int64_t serving_busy_ns = 0;
  decltype(Options::source) source;
};

std::vector<Diagnosis> detect(const DetectorSets& detectors, const DetectorInput& input);

// Answers to --suspect, by what the verdict says is the limit; fails on a pattern that is no
// regular expression.
Result<std::vector<SuspectAnswer>> answer_suspects(const std::vector<std::string>& patterns,
                                                   const DetectorInput& input, VerdictKind verdict);

}  // namespace assay::analysis
