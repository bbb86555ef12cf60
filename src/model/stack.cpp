#include "model/stack.h"

#include <array>

namespace assay::model {

std::string_view stack_end_text(StackEnd end) {
  static constexpr std::array<std::string_view, kStackEndCount> kTexts{
      "",
      "[truncated: stack copy too short]",
      "[truncated: no unwind information]",
      "[truncated: unwinding left the stack]",
      "[truncated: register not captured]",
      "[truncated: too many frames]",
      "[stack not sampled]",
      "[stack lost]",
      "[frame pointers only]",
      "[truncated: interrupted stack not copied]"};
  return kTexts[static_cast<size_t>(end) % kTexts.size()];
}

FrameId FrameTable::intern(const Frame& frame) {
  auto [it, added] = ids_.try_emplace(frame, FrameId{static_cast<uint32_t>(frames_.size())});
  if (added) frames_.push_back(frame);
  return it->second;
}

StackId StackTable::push(StackId parent, FrameId frame) {
  StackNode node{parent, frame};
  auto [it, added] = ids_.try_emplace(node, StackId{static_cast<uint32_t>(nodes_.size())});
  if (added) nodes_.push_back(node);
  return it->second;
}

StackId StackTable::intern(std::span<const FrameId> root_first) {
  StackId id;
  for (FrameId frame : root_first) id = push(id, frame);
  return id;
}

std::vector<FrameId> StackTable::frames(StackId id) const {
  std::vector<FrameId> leaf_first;
  for (; id.value != 0; id = nodes_[id.value].parent) leaf_first.push_back(nodes_[id.value].frame);
  return leaf_first;
}

}  // namespace assay::model
