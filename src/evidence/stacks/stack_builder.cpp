#include "evidence/stacks/stack_builder.h"

#include <algorithm>
#include <bit>

#include "os/process/touch_pages.h"

namespace assay::evidence {
namespace {

constexpr uint64_t kPage = 4096;

}  // namespace

using model::StackEnd;
using model::StackId;

StackBuilder::StackBuilder(AddressSpaces& spaces, unwind::Unwinder& unwinder, Sink& sink,
                           NewFrame new_frame)
    : spaces_(spaces), unwinder_(unwinder), sink_(sink), new_frame_(std::move(new_frame)) {}

StackId StackBuilder::build(pid_t pid, pid_t tid, capture::SampleRecord& sample, TimeNs now) {
  unwind::RawStack raw;
  raw.pid = pid;
  raw.tid = tid;
  raw.registers = sample.registers;
  raw.copy = sample.stack;
  raw.fp_chain = sample.user_chain;
  StackId stack = push_user(raw, now);
  if (sample.kind == capture::EventKind::off_cpu) kernel_paths_.learn(stack, sample.kernel_chain);
  if (sample.kind == capture::EventKind::off_cpu_bare)
    sample.kernel_chain = kernel_paths_.recall(stack);
  return push_kernel(stack, sample.kernel_chain);
}

StackId StackBuilder::push_kernel(StackId user, std::span<const uint64_t> chain) {
  // Outermost first; every kernel address but the leaf's is a return address.
  StackId stack = user;
  for (size_t i = chain.size(); i-- > 0;)
    stack = push(stack, spaces_.kernel(), chain[i] - (i == 0 ? 0 : 1));
  return stack;
}

StackId StackBuilder::build_user(const unwind::RawStack& raw, TimeNs now) {
  return push_user(raw, now);
}

StackId StackBuilder::push_user(const unwind::RawStack& raw, TimeNs now) {
  if (raw.registers.known == 0 && raw.fp_chain.empty())
    return {};  // a kernel thread, or one exiting
  const unwind::UserStack& user = unwinder_.unwind(raw, spaces_.of(raw.pid));
  // Without a copy (it was cut to save time) frame pointers are all there is, whatever the code.
  if (user.used_frame_pointers && !raw.copy.empty()) ++needs_.frame_pointer_stacks;
  if (user.end == StackEnd::copy_too_short) note_short_copy(raw, user);
  auto depth = static_cast<size_t>(std::bit_width(user.copy_needed));
  ++needs_.by_depth[std::min(depth, needs_.by_depth.size() - 1)];
  return build_from_addresses(raw.pid, user.frames, user.end, now);
}

StackId StackBuilder::build_from_addresses(pid_t pid, std::span<const unwind::UserFrame> frames,
                                           StackEnd end, TimeNs now) {
  StackId stack;
  if (end != StackEnd::complete) stack = marker(end);
  for (size_t i = frames.size(); i-- > 0;) {
    const unwind::UserFrame& frame = frames[i];
    uint64_t address = frame.pc - (frame.is_return_address ? 1 : 0);
    const model::Mapping* mapping = spaces_.find(pid, address, now);
    stack = mapping != nullptr ? push(stack, mapping->module, mapping->to_module_address(address))
                               : push(stack, spaces_.unknown_memory(pid), address);
  }
  return stack;
}

// A copy that is shorter than what was asked for ended at a page that is not in memory.
void StackBuilder::note_short_copy(const unwind::RawStack& raw, const unwind::UserStack& user) {
  constexpr size_t kMostHoles = 10'000;
  needs_.copy_bytes = std::max(needs_.copy_bytes, user.copy_needed);
  uint64_t hole = raw.registers.sp() + raw.copy.size();
  if (raw.copy.empty() || hole % kPage != 0 || user.copy_needed <= raw.copy.size()) return;
  if (touched_.size() >= kMostHoles) touched_.clear();
  if (touched_.insert({raw.pid, hole}).second)
    os::touch_pages(raw.pid, hole, raw.registers.sp() + user.copy_needed);
}

// Counts a walk that read exactly `bytes` as deeper, since its power of two is all that is known.
uint64_t StackBuilder::Needs::deeper_than(uint32_t bytes) const {
  uint64_t count = 0;
  for (size_t i = static_cast<size_t>(std::bit_width(bytes)); i < by_depth.size(); ++i)
    count += by_depth[i];
  return count;
}

StackBuilder::Needs StackBuilder::take_needs() {
  Needs needs = needs_;
  needs_.copy_bytes = 0;
  return needs;
}

StackId StackBuilder::marker(StackEnd end) {
  return push({}, spaces_.marker(), static_cast<uint64_t>(end));
}

StackId StackBuilder::push(StackId parent, model::ModuleId module, uint64_t address) {
  model::Frame frame{module, address};
  size_t frames_before = frames_.all().size();
  model::FrameId id = frames_.intern(frame);
  if (frames_.all().size() > frames_before) {
    sink_.add_frame(id, frame);
    new_frame_(id, frame);
  }
  size_t stacks_before = stacks_.all().size();
  StackId stack = stacks_.push(parent, id);
  if (stacks_.all().size() > stacks_before) sink_.add_stack(stack, stacks_[stack]);
  return stack;
}

}  // namespace assay::evidence
