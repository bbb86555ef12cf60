#include "session/stack_policy.h"

#include <utility>

namespace assay::session {
namespace {

constexpr uint32_t kLargestCopy = 32 * 1024;
constexpr uint64_t kFewestStacks = 50;          // fewer tell nothing
constexpr uint64_t kToleratedCutOneIn = 500;    // 0.2 %
constexpr uint64_t kFramePointersOneIn = 20;    // 5 %

}  // namespace

void StackPolicy::reconsider(const unwind::UnwindStats& stats, uint64_t frame_pointer_stacks) {
  uint64_t stacks = stats.stacks - stacks_before_;
  if (stacks < kFewestStacks) return;
  stacks_before_ = stats.stacks;
  uint64_t cut_now = stats.ended[static_cast<int>(model::StackEnd::copy_too_short)];
  uint64_t cut = cut_now - std::exchange(cut_before_, cut_now);
  uint64_t walked = frame_pointer_stacks - std::exchange(frame_pointers_before_, frame_pointer_stacks);

  uint32_t copy_bytes = events_.off_cpu_copy_bytes();
  bool user_chain = events_.off_cpu_user_chain() || walked * kFramePointersOneIn > stacks;
  if (cut * kToleratedCutOneIn > stacks && copy_bytes < kLargestCopy) copy_bytes *= 2;
  if (copy_bytes == events_.off_cpu_copy_bytes() && user_chain == events_.off_cpu_user_chain()) return;
  (void)events_.set_off_cpu_stacks(copy_bytes, user_chain);  // on failure the old event goes on
}

}  // namespace assay::session
