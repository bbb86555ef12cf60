// Frames and stacks, interned: every distinct frame and every distinct stack is stored once.
//
// A stack is a node of a prefix tree: its leaf frame and its parent stack (the caller's stack).
// Root first: the outermost user frame, …, the innermost user frame, then kernel frames to the
// leaf. A stack whose walk did not reach the thread's first frame has a marker frame as its root,
// so that truncation is visible and weighted wherever stacks are shown. Tables are not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/ids.h"

namespace assay::model {

// Names are looked up by `address`: the sampled ip for a leaf, the return address − 1 for a caller.
// Its meaning depends on the module's kind (see module.h).
struct Frame {
  ModuleId module;
  uint64_t address = 0;
  auto operator<=>(const Frame&) const = default;
};

// How a walk of a user stack ended. Everything but `complete` is recorded as a marker frame whose
// module is the one marker module and whose address is this value.
enum class StackEnd : uint8_t {
  complete = 0,          // reached the first frame of the thread
  copy_too_short = 1,    // the copied part of the stack ended
  no_unwind_info = 2,    // no CFI for an address and no frame pointer to follow
  bad_memory = 3,        // CFI led to an address that is not on the stack
  register_unknown = 4,  // a needed register's value was not captured
  too_deep = 5,          // more frames than the limit
  not_sampled = 6,       // the wait's stack was not taken (event cap, no permission)
  lost = 7,              // the record with the stack was lost
  frame_pointers = 8,    // walked by frame pointers alone; frames may be missing
  other_stack = 9,  // a signal handler ran on its own stack; the interrupted one was not copied
};
inline constexpr int kStackEndCount = 10;

// "[truncated: stack copy too short]" and the like; "" for complete.
std::string_view stack_end_text(StackEnd end);

class FrameTable {
 public:
  FrameId intern(const Frame& frame);
  const Frame& operator[](FrameId id) const { return frames_[id.value]; }
  const std::vector<Frame>& all() const { return frames_; }

 private:
  struct Hash {
    size_t operator()(const Frame& f) const noexcept {
      return (f.address + (uint64_t{f.module.value} << 40)) * 0x9E3779B97F4A7C15ull >> 7;
    }
  };
  std::vector<Frame> frames_;
  std::unordered_map<Frame, FrameId, Hash> ids_;
};

struct StackNode {
  StackId parent;
  FrameId frame;
  auto operator<=>(const StackNode&) const = default;
};

class StackTable {
 public:
  StackTable() : nodes_(1) {}  // node 0: the empty stack

  StackId push(StackId parent, FrameId frame);
  StackId intern(std::span<const FrameId> root_first);

  const StackNode& operator[](StackId id) const { return nodes_[id.value]; }
  const std::vector<StackNode>& all() const { return nodes_; }

  // Frames from leaf to root.
  std::vector<FrameId> frames(StackId id) const;

 private:
  struct Hash {
    size_t operator()(const StackNode& n) const noexcept {
      return (uint64_t{n.parent.value} << 32 | n.frame.value) * 0x9E3779B97F4A7C15ull >> 7;
    }
  };
  std::vector<StackNode> nodes_;
  std::unordered_map<StackNode, StackId, Hash> ids_;
};

}  // namespace assay::model
