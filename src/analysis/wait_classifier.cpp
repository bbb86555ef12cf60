#include "analysis/wait_classifier.h"

namespace assay::analysis {

WaitClassifier::WaitClassifier(const CallTree& tree) : tree_(tree), by_stack_(tree.stack_count()) {}

StackEvidence WaitClassifier::compute(model::StackId stack) const {
  constexpr size_t kUserFrames = 16;
  std::vector<std::string_view> kernel, user;
  for (PathIndex path = tree_.path_of(stack); path != 0; path = tree_.paths()[path].parent) {
    const Function& function = tree_.functions()[tree_.paths()[path].function];
    if (function.kind == CodeKind::kernel) kernel.push_back(function.name);
    if (function.kind == CodeKind::user) user.push_back(function.name);
    if (user.size() == kUserFrames) break;
  }
  return evidence_of(kernel, user);
}

BlockKind WaitClassifier::kind_of(const model::Wait& wait) {
  model::StackId stack = wait.stack.value < by_stack_.size() ? wait.stack : model::StackId{};
  std::optional<StackEvidence>& known = by_stack_[stack.value];
  if (!known) known = compute(stack);
  return classify(*known, wait.syscall, wait.fd_kind);
}

}  // namespace assay::analysis
