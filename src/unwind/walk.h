// Walk: one walked stack and everything the walk depended on, so that an equal sample can be
// answered by comparing words instead of walking again.
#pragma once

#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "model/registers.h"
#include "unwind/unwinder.h"

namespace assay::unwind {

struct StackWord {
  uint32_t offset;  // from the sampled stack pointer
  uint64_t value;
};

inline constexpr size_t kMaxFrames = 2048;

struct Walk {
  UserStack stack;
  std::vector<uint64_t> sps;  // per frame: the stack pointer in it
  // What was read of the copy: for each frame but the first and the `odd` ones its pc, just below
  // its stack pointer; and `words`.
  std::vector<StackWord> words;
  std::vector<uint32_t> odd;       // frames found otherwise: by signal frame or expression
  model::UserRegisters registers;  // as sampled
  // Ended in other_stack: what was interrupted there; pc, sp and callee-saved registers.
  model::UserRegisters interrupted;
  uint32_t registers_used = 0;   // bit i: the result depends on register i's sampled value
  uint32_t code_version = 0;     // of the CodeMap it was walked with; 0: holds nothing
  bool is_exact = false;         // depends on nothing but what is listed here
  bool switched_stacks = false;  // ended where the caller is on another stack

  void clear() {
    stack.frames.clear();
    stack.end = model::StackEnd::complete;
    stack.used_frame_pointers = stack.joined = stack.popped_call = false;
    stack.copy_needed = 0;
    sps.clear();
    words.clear();
    odd.clear();
    interrupted.known = 0;
    registers_used = code_version = 0;
    is_exact = switched_stacks = false;
  }
};

}  // namespace assay::unwind
