// StackPolicy: what is taken of a user's stack at every context switch: as little as complete
// stacks allow.
//
// A small copy of the stack is unwound by call-frame information. Its size begins larger than most
// stacks need, shrinks to what the first walks read, and grows when too many walks end at its end;
// the few deeper stacks are joined with earlier ones (walk_cache.h). The kernel's walk along frame
// pointers is asked for only when code without call-frame information was seen (Go, JIT): on other
// code it costs page faults and finds wrong addresses. The kernel's part of the stack is the most
// expensive part of a record. It is taken at every switch up to a rate of switches, and above that
// rate in a tenth of the time (KernelPaths fills in the rest). Threads: the consumer's.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "evidence/stacks/stack_builder.h"
#include "unwind/unwinder.h"

namespace assay::evidence {

// What is recorded of stacks at context switches, and can be changed while it is.
class SwitchStacks {
 public:
  virtual ~SwitchStacks() = default;
  virtual uint32_t copy_bytes() const = 0;
  virtual bool user_chain() const = 0;
  // On failure the old size goes on.
  virtual void set(uint32_t copy_bytes, bool user_chain) = 0;
  // Whether switches can be recorded without the kernel's part.
  virtual bool can_be_bare() const = 0;
  virtual void record_kernel_part(bool on) = 0;
};

class StackPolicy {
 public:
  explicit StackPolicy(SwitchStacks& switches) : switch_stacks_(switches) {}
  // With the counts so far; called some times a second.
  void reconsider(const unwind::UnwindStats& stats, const StackBuilder::Needs& needs);
  // With the number of switches so far; called about every kSwitchTickNs.
  void pace_kernel_stacks(uint64_t switches, TimeNs now);
  // Whether the kernel's parts of some waits' stacks were filled in.
  bool filled_in_kernel_stacks() const { return filled_in_; }

  static constexpr int64_t kSwitchTickNs = 50 * kNsPerMs;

 private:
  uint32_t better_copy_bytes(uint64_t stacks, uint64_t cut, const StackBuilder::Needs& needs);

  SwitchStacks& switch_stacks_;
  bool fitted_ = false;  // the copy was made as small as the first walks allow
  uint64_t stacks_before_ = 0;
  uint64_t cut_before_ = 0;
  uint64_t frame_pointers_before_ = 0;
  uint64_t switches_before_ = 0;
  TimeNs ticked_at_ = 0;
  int tick_ = 0;
  bool filled_in_ = false;
};

}  // namespace assay::evidence
