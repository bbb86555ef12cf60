#include "evidence/stacks/stack_trails.h"

#include <algorithm>

namespace assay::evidence {

StackTrails::Taken StackTrails::take_trail(pid_t tid, const Stack& stack) {
  if (threads_.size() >= kMostThreads && !threads_.contains(tid)) threads_.clear();
  Thread& thread = threads_[tid];
  Trail* best = &thread[0];
  size_t known = common(*best, stack);
  for (Trail& trail : thread) {
    if (size_t more = common(trail, stack); more > known) {
      best = &trail;
      known = more;
    }
  }
  if (known * 2 < stack.words.size()) {  // something else than any of them
    Trail* oldest = &*std::ranges::min_element(thread, {}, &Trail::used_at);
    if (oldest != best) {
      auto end = static_cast<ptrdiff_t>(known);
      oldest->words.assign(best->words.begin(), best->words.begin() + end);
      oldest->ids.assign(best->ids.begin(), best->ids.begin() + end);
      best = oldest;
    }
  }
  best->used_at = ++clock_;
  return {best, known};
}

// How many words from the root on are those of the trail.
size_t StackTrails::common(const Trail& trail, const Stack& stack) {
  if (trail.root != stack.root || trail.space != stack.space) return 0;
  size_t most = std::min(trail.words.size(), stack.words.size());
  // Where one is in the kernel already, the same word would mean another frame.
  if (trail.user_words != stack.user_words) {
    most = std::min({most, trail.user_words, stack.user_words});
  }
  auto end = stack.words.begin() + static_cast<ptrdiff_t>(most);
  auto [differs, unused] = std::mismatch(stack.words.begin(), end, trail.words.begin());
  return static_cast<size_t>(differs - stack.words.begin());
}

void StackTrails::lay(Trail& trail, const Stack& stack, size_t known) {
  trail.root = stack.root;
  trail.space = stack.space;
  trail.user_words = stack.user_words;
  trail.words.resize(known);
  trail.words.insert(trail.words.end(), stack.words.begin() + static_cast<ptrdiff_t>(known),
                     stack.words.end());
  trail.ids.resize(stack.words.size());
}

StackTrails::Node& StackTrails::node_of(model::StackId parent, uint32_t space, uint64_t address) {
  if (used_ * 2 >= nodes_.size()) make_room();
  size_t mask = nodes_.size() - 1;
  uint64_t hash = (address ^ uint64_t{parent.value} << 32 ^ space) * 0x9E3779B97F4A7C15ull;
  for (size_t at = hash >> 32;; ++at) {
    Node& node = nodes_[at & mask];
    if (node.child == 0) {
      ++used_;
      node = {address, parent.value, space, 0};
      return node;
    }
    if (node.address == address && node.parent == parent.value && node.space == space) return node;
  }
}

void StackTrails::make_room() {
  std::vector<Node> old;
  std::swap(old, nodes_);
  used_ = 0;
  bool full = old.size() >= 2 * most_nodes_;
  nodes_.resize(full ? kFirstNodes : 2 * old.size());
  if (full) return;
  for (const Node& node : old) {
    if (node.child != 0) node_of({node.parent}, node.space, node.address).child = node.child;
  }
}

}  // namespace assay::evidence
