// RunRules: the report's rules over one run: which waits are for work (idle), and which category
// owns each call path. The same rules and the same judge as analyse(), so that page and report say
// the same.
//
// In: one pass of samples and of waits (observe), then decide(). Out: idle() and category_of() in
// constant time. `tree` and `run` must outlive it. Not thread-safe. Failures: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/categories.h"
#include "analysis/idle_judge.h"

namespace assay::view {

class RunRules {
 public:
  RunRules(const analysis::CallTree& tree, const run::Contents& run);

  void observe(const model::Sample& sample) { judge_.observe_sample(sample); }
  void observe(const model::Wait& wait, analysis::BlockKind kind) {
    judge_.observe_wait(wait, kind);
  }
  void decide() { judge_.decide(); }

  bool idle(const model::Wait& wait, analysis::BlockKind kind) const {
    return judge_.idle(wait, kind);
  }
  // Index into categories(), in the breakdown by subsystem.
  uint32_t category_of(analysis::PathIndex path) const { return categories_.owner(0, path); }
  std::vector<std::string_view> category_names() const;

 private:
  analysis::NameSets sets_;
  analysis::IdleRules idle_;
  analysis::Categories categories_;
  analysis::StackFeatures features_;
  analysis::IdleJudge judge_;
};

}  // namespace assay::view
