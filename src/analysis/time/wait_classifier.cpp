#include "analysis/time/wait_classifier.h"

#include <algorithm>

namespace assay::analysis {

WaitClassifier::WaitClassifier(const CallTree& tree) : tree_(tree), by_stack_(tree.stack_count()) {}

StackEvidence WaitClassifier::compute(model::StackId stack) const {
  constexpr size_t kUserFrames = 16, kDriverFrames = 40;
  std::vector<std::string_view> kernel, user;
  std::vector<CodePlace> places;
  for (PathIndex path = tree_.path_of(stack); path != 0; path = tree_.paths()[path].parent) {
    const Function& function = tree_.functions()[tree_.paths()[path].function];
    if (function.kind == CodeKind::kernel) kernel.push_back(function.name);
    if (function.kind != CodeKind::user) continue;
    if (user.size() < kUserFrames) user.push_back(function.name);
    places.push_back({function.name, function.module});
    if (places.size() == kDriverFrames) break;
  }
  StackEvidence evidence = evidence_of(kernel, user);
  add_accelerator_evidence(places, evidence);
  return evidence;
}

const StackEvidence& WaitClassifier::evidence(model::StackId stack) const {
  if (stack.value >= by_stack_.size()) stack = {};
  std::optional<StackEvidence>& known = by_stack_[stack.value];
  if (!known) known = compute(stack);
  return *known;
}

uint32_t WaitClassifier::process_of(model::ThreadId thread) const {
  return thread.value < processes_.size() ? processes_[thread.value] : 0;
}

Result<void> WaitClassifier::learn(const run::Reader& reader) {
  bool has_semaphores = std::ranges::any_of(tree_.functions(), [](const Function& function) {
    return function.kind == CodeKind::user && is_semaphore_wait(function.name);
  });
  if (!has_semaphores) return {};
  for (const model::Thread& thread : reader.contents().threads)
    processes_.push_back(thread.process.value);
  auto read = reader.for_each_wait({}, [this](const model::Wait& wait) {
    if (evidence(wait.stack).semaphore) semaphores_.observe(wait, process_of(wait.thread));
  });
  semaphores_.decide();
  return read;
}

BlockKind WaitClassifier::kind_of(const model::Wait& wait) const {
  const StackEvidence& stack = evidence(wait.stack);
  BlockKind kind = classify(stack, wait.syscall, wait.fd_kind);
  bool is_lock = stack.semaphore && kind == BlockKind::condition &&
                 semaphores_.is_lock(wait, process_of(wait.thread));
  return is_lock ? BlockKind::lock : kind;
}

}  // namespace assay::analysis
