#include "session/copy_size.h"

namespace assay::session {
namespace {

constexpr uint32_t kLargestCopy = 32 * 1024;
constexpr uint64_t kFewestStacks = 50;     // fewer tell nothing
constexpr uint64_t kToleratedOneIn = 500;  // cut stacks: 0.2 %

}  // namespace

void CopySize::reconsider(const unwind::UnwindStats& stats) {
  uint64_t stacks = stats.stacks - stacks_before_;
  if (stacks < kFewestStacks) return;
  uint64_t cut = stats.ended[static_cast<int>(model::StackEnd::copy_too_short)] - cut_before_;
  stacks_before_ += stacks;
  cut_before_ += cut;
  if (cut * kToleratedOneIn < stacks || events_.off_cpu_copy_bytes() >= kLargestCopy) return;
  (void)events_.set_off_cpu_copy(events_.off_cpu_copy_bytes() * 2);  // on failure the old size goes on
}

}  // namespace assay::session
