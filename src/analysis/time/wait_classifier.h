// WaitClassifier: wait_kind.h over a whole run, with the stack's part of the evidence kept per
// stack, and with what only the run's waits together tell (SemaphoreLocks).
//
// In: a CallTree (must outlive it) and waits; out: each wait's kind. learn() comes first and reads
// the run's waits once, where there are semaphores among them. Not thread-safe until every stack
// has been asked for once.
#pragma once

#include <optional>
#include <vector>

#include "analysis/locks/semaphore_locks.h"
#include "analysis/profile/call_tree.h"
#include "analysis/time/wait_kind.h"
#include "base/result.h"
#include "run/reader.h"

namespace assay::analysis {

class WaitClassifier {
 public:
  explicit WaitClassifier(const CallTree& tree);
  Result<void> learn(const run::Reader& reader);
  BlockKind kind_of(const model::Wait& wait) const;

 private:
  StackEvidence compute(model::StackId stack) const;
  const StackEvidence& evidence(model::StackId stack) const;
  uint32_t process_of(model::ThreadId thread) const;

  const CallTree& tree_;
  mutable std::vector<std::optional<StackEvidence>> by_stack_;  // filled when first asked for
  std::vector<uint32_t> processes_;  // by thread; empty without semaphores
  SemaphoreLocks semaphores_;
};

}  // namespace assay::analysis
