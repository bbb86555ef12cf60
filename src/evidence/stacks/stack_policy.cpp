#include "evidence/stacks/stack_policy.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace assay::evidence {
namespace {

constexpr uint32_t kLargestCopy = 32 * 1024;
constexpr uint32_t kSmallestCopy = 1024;
constexpr uint32_t kBeyond = 256;
constexpr uint64_t kFewestStacks = 50;        // fewer tell nothing
constexpr uint64_t kToleratedCutOneIn = 500;  // 0.2 %
constexpr uint64_t kFramePointersOneIn = 20;  // 5 %
constexpr double kRateOfAllKernelStacks =
    3000;  // switches a second on the machine: about 1 % of a CPU
constexpr int kTicksPerKernelStack = 10;

}  // namespace

void StackPolicy::reconsider(const unwind::UnwindStats& stats, const StackBuilder::Needs& needs) {
  uint64_t stacks = stats.stacks - stacks_before_;
  if (stacks < kFewestStacks) return;
  stacks_before_ = stats.stacks;
  uint64_t cut_now = stats.ended[static_cast<int>(model::StackEnd::copy_too_short)];
  uint64_t cut = cut_now - std::exchange(cut_before_, cut_now);
  uint64_t walked = needs.frame_pointer_stacks -
                    std::exchange(frame_pointers_before_, needs.frame_pointer_stacks);

  uint32_t copy_bytes = better_copy_bytes(stacks, cut, needs);
  bool user_chain = switch_stacks_.user_chain() || walked * kFramePointersOneIn > stacks;
  if (copy_bytes == switch_stacks_.copy_bytes() && user_chain == switch_stacks_.user_chain())
    return;
  switch_stacks_.set(copy_bytes, user_chain);
}

uint32_t StackPolicy::better_copy_bytes(uint64_t stacks, uint64_t cut,
                                        const StackBuilder::Needs& needs) {
  uint32_t copy_bytes = switch_stacks_.copy_bytes();
  bool too_short = cut * kToleratedCutOneIn > stacks;
  if (too_short && copy_bytes < kLargestCopy) {
    // A little beyond what was wanted: the next frames out need some, too.
    uint32_t wanted = std::bit_ceil(std::max(needs.copy_bytes + kBeyond, copy_bytes * 2));
    return std::min(wanted, kLargestCopy);
  }
  if (too_short || std::exchange(fitted_, true)) return copy_bytes;
  while (copy_bytes > kSmallestCopy &&
         needs.deeper_than(copy_bytes / 2) * kToleratedCutOneIn <= stacks) {
    copy_bytes /= 2;
  }
  return copy_bytes;
}

void StackPolicy::pace_kernel_stacks(uint64_t switches, TimeNs now) {
  double seconds = static_cast<double>(now - ticked_at_) / 1e9;
  double rate = seconds > 0 ? static_cast<double>(switches - switches_before_) / seconds : 0;
  bool first = ticked_at_ == 0;
  switches_before_ = switches;
  ticked_at_ = now;
  if (first || !switch_stacks_.can_be_bare()) return;
  tick_ = (tick_ + 1) % kTicksPerKernelStack;
  bool record = rate < kRateOfAllKernelStacks || tick_ == 0;
  if (!record) filled_in_ = true;
  switch_stacks_.record_kernel_part(record);
}

}  // namespace assay::evidence
