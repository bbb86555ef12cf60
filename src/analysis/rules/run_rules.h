// RunRules: the report's rules over one run: which waits are for work (idle), and which category
// owns each call path. The same rules and the same judge as analyse(), so that whatever shows a run
// says what its report says.
//
// In: one pass of waits and of samples over the whole window (observe), whatever part of it is
// shown: what is idle does not depend on the selection; then decide(). Out: idle() and
// category_of() in constant time. `tree` and `run` must outlive it. Not thread-safe. Failures:
// none; rows of threads that the run does not list are left out.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/profile/categories.h"
#include "analysis/time/idle_judge.h"

namespace assay::analysis {

class RunRules {
 public:
  RunRules(const CallTree& tree, const run::Contents& run);

  void observe(const model::Sample& sample) {
    if (sample.thread.value < threads_) judge_.observe_sample(sample);
  }
  void observe(const model::Wait& wait, BlockKind kind) {
    if (wait.thread.value < threads_) judge_.observe_wait(wait, kind);
  }
  void decide() { judge_.decide(); }

  bool idle(const model::Wait& wait, BlockKind kind) const { return judge_.idle(wait, kind); }
  // Index into category_names(), in the breakdown by subsystem.
  uint32_t category_of(PathIndex path) const { return categories_.owner(0, path); }
  std::vector<std::string_view> category_names() const;

 private:
  size_t threads_;
  NameSets sets_;
  IdleRules idle_;
  Categories categories_;
  StackFeatures features_;
  IdleJudge judge_;
};

}  // namespace assay::analysis
