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

struct Walk {
  UserStack stack;
  std::vector<uint64_t> sps;       // per frame: the stack pointer in it
  std::vector<StackWord> words;    // every word of the copy that was read
  model::UserRegisters registers;  // as sampled
  uint32_t registers_used = 0;     // bit i: the result depends on register i's sampled value
  uint64_t code_version = 0;       // of the CodeMap it was walked with; 0: holds nothing
  uint64_t last_used = 0;

  void clear() {
    stack.frames.clear();
    stack.end = model::StackEnd::complete;
    stack.used_frame_pointers = stack.joined = stack.popped_call = false;
    stack.copy_needed = 0;
    sps.clear();
    words.clear();
    registers_used = 0;
    code_version = 0;
  }
};

}  // namespace assay::unwind
