// WaitClassifier: wait_kind.h over a whole run, with the stack's part of the evidence kept per
// stack.
//
// In: a CallTree (must outlive it) and waits; out: each wait's kind. Not thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "analysis/call_tree.h"
#include "analysis/wait_kind.h"

namespace assay::analysis {

class WaitClassifier {
 public:
  explicit WaitClassifier(const CallTree& tree);
  BlockKind kind_of(const model::Wait& wait);

 private:
  StackEvidence compute(model::StackId stack) const;

  const CallTree& tree_;
  std::vector<std::optional<StackEvidence>> by_stack_;
};

}  // namespace assay::analysis
