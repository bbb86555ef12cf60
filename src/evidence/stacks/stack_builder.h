// StackBuilder: a sample's kernel chain and user stack become one interned stack.
//
// In: records of the capture, with the address spaces of their time. Out: a StackId; every new
// frame and stack node goes to the sink once, and every new frame to `new_frame`. Threads: one
// owner.
#pragma once

#include <array>
#include <functional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "capture/perf/record.h"
#include "evidence/sink.h"
#include "evidence/stacks/address_spaces.h"
#include "evidence/stacks/kernel_paths.h"
#include "model/stack.h"
#include "unwind/unwinder.h"

namespace assay::evidence {

class StackBuilder {
 public:
  using NewFrame = std::function<void(model::FrameId, const model::Frame&)>;

  StackBuilder(AddressSpaces& spaces, unwind::Unwinder& unwinder, Sink& sink, NewFrame new_frame);

  // The whole stack of a sample. A bare switch, which comes without the kernel's part, gets the one
  // that its user stack had last; `sample.kernel_chain` is then set to it.
  model::StackId build(pid_t pid, pid_t tid, capture::SampleRecord& sample, TimeNs now);
  // A stack of which only the user part is known, as a snapshot gives it.
  model::StackId build_user(const unwind::RawStack& raw, TimeNs now);
  // A user stack that was walked elsewhere, leaf first.
  model::StackId build_from_addresses(pid_t pid, std::span<const unwind::UserFrame> frames,
                                      model::StackEnd end, TimeNs now);
  // The kernel's part, leaf first, on top of a user stack.
  model::StackId push_kernel(model::StackId user, std::span<const uint64_t> chain);
  model::StackId marker(model::StackEnd end);
  const model::FrameTable& frames() const { return frames_; }
  const model::StackTable& stacks() const { return stacks_; }
  // How much of the stacks the walks needed, for choosing how much the kernel copies of the next
  // ones.
  struct Needs {
    uint64_t frame_pointer_stacks = 0;  // stacks with frames that only frame pointers could find
    uint32_t copy_bytes =
        0;  // copy that the deepest of the walks that ended at the copy's end needed
    std::array<uint64_t, 16> by_depth{};  // walks, by how many bytes of the stack they read (log2)
    uint64_t deeper_than(uint32_t bytes) const;
  };
  Needs take_needs();  // since the last call

 private:
  void note_short_copy(const unwind::RawStack& raw, const unwind::UserStack& user);
  model::StackId push_user(const unwind::RawStack& raw, TimeNs now);
  model::StackId push(model::StackId parent, model::ModuleId module, uint64_t address);

  AddressSpaces& spaces_;
  unwind::Unwinder& unwinder_;
  Sink& sink_;
  NewFrame new_frame_;
  model::FrameTable frames_;
  model::StackTable stacks_;
  KernelPaths kernel_paths_;
  Needs needs_;
  std::set<std::pair<pid_t, uint64_t>> touched_;  // ends of copies whose next pages were mapped in
};

}  // namespace assay::evidence
