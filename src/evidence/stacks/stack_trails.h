// StackTrails: stacks of addresses become ids, at the cost of what is new in them.
//
// A thread's next stack shares most of its outer frames with one of its last stacks: these keep
// their ids and are not looked up again. Each further frame is found in one step, by the id of the
// stack below it and its address. Only a frame that was never seen is interned, by a function that
// the user of this class gives. So the ids are the same as those of interning frame by frame.
// Bounded: when it is full it forgets everything, and frames are interned again. Not thread-safe.
// Failures: none.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "model/ids.h"

namespace assay::evidence {

class StackTrails {
 public:
  // `most_nodes`: a power of two.
  explicit StackTrails(size_t most_nodes = size_t{1} << 20) : most_nodes_(most_nodes) {}

  // Root first.
  struct Stack {
    model::StackId root;  // what lies below the first address; 0: nothing
    // What user addresses mean: a number for every process and for every change of its mappings,
    // never 0.
    uint32_t space = 1;
    std::span<const uint64_t> words;  // user addresses, then the kernel's
    size_t user_words = 0;            // of them
  };

  // The id of the stack. `intern(parent, address, is_kernel)` gives the id of a stack that is not
  // known here.
  template <class Intern>
  model::StackId find(pid_t tid, const Stack& stack, const Intern& intern) {
    auto [trail_at, known] = take_trail(tid, stack);
    Trail& trail = *trail_at;
    model::StackId id = known > 0 ? trail.ids[known - 1] : stack.root;
    // What leaves a long trail just before its own end, as recursion does at every depth, costs
    // little to find; the trail is worth more as it is.
    bool is_kept = known + 2 >= stack.words.size() && trail.words.size() > stack.words.size();
    if (!is_kept) lay(trail, stack, known);
    for (size_t i = known; i < stack.words.size(); ++i) {
      bool is_kernel = i >= stack.user_words;
      Node& node = node_of(id, is_kernel ? kKernelSpace : stack.space, stack.words[i]);
      if (node.child == 0) node.child = intern(id, stack.words[i], is_kernel).value;
      id = {node.child};
      if (!is_kept) trail.ids[i] = id;
    }
    return id;
  }
  void forget(pid_t tid) { threads_.erase(tid); }

 private:
  static constexpr size_t kMostThreads = 1024;
  static constexpr size_t kWays = 4;  // what a thread does by turns: reading, working, answering
  static constexpr size_t kFirstNodes = size_t{1} << 10;
  static constexpr uint32_t kKernelSpace = 0;

  struct Trail {
    model::StackId root;
    uint32_t space = 0;
    size_t user_words = 0;
    std::vector<uint64_t> words;
    std::vector<model::StackId> ids;  // of the stack up to each word
    uint64_t used_at = 0;
  };
  using Thread = std::array<Trail, kWays>;
  struct Node {
    uint64_t address = 0;
    uint32_t parent = 0;
    uint32_t space = 0;
    uint32_t child = 0;  // 0: the node is free, or is just being filled
  };

  struct Taken {
    Trail* trail;
    size_t known;  // words from the root on that it has in common with the stack
  };
  // The trail that the stack goes on from.
  Taken take_trail(pid_t tid, const Stack& stack);
  // Makes the trail the stack's own, but for the ids behind `known`.
  static void lay(Trail& trail, const Stack& stack, size_t known);
  static size_t common(const Trail& trail, const Stack& stack);
  // The node of that key; a new one, without a child, when there was none.
  Node& node_of(model::StackId parent, uint32_t space, uint64_t address);
  void make_room();

  size_t most_nodes_;
  std::unordered_map<pid_t, Thread> threads_;
  uint64_t clock_ = 0;
  std::vector<Node> nodes_ = std::vector<Node>(kFirstNodes);  // open addressing
  size_t used_ = 0;
};

}  // namespace assay::evidence
