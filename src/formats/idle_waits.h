// IdleWaits: which waits of a run are for work, by the report's rules and judge.
//
// In: one pass over the whole window (learn), whatever part of it is exported: what is idle does
// not depend on the selection. Out: has() in constant time. `tree` and `run` must outlive it. Not
// thread-safe. Failures: the Reader's.
#pragma once

#include "analysis/idle_judge.h"
#include "analysis/wait_classifier.h"
#include "base/result.h"
#include "run/reader.h"

namespace assay::formats {

class IdleWaits {
 public:
  IdleWaits(const analysis::CallTree& tree, const run::Contents& run);

  Result<void> learn(const run::Reader& reader, analysis::WaitClassifier& classifier);
  bool has(const model::Wait& wait, analysis::BlockKind kind) const {
    return judge_.idle(wait, kind);
  }

 private:
  analysis::NameSets sets_;
  analysis::IdleRules rules_;
  analysis::StackFeatures features_;
  analysis::IdleJudge judge_;
};

}  // namespace assay::formats
