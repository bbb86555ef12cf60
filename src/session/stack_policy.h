// StackPolicy: what is taken of a user's stack at every context switch: as little as complete stacks
// allow.
//
// A small copy of the stack is unwound by call-frame information. The copy grows when too many walks end
// where it ends; joins with earlier stacks make up for the few that are deeper. The kernel's walk along
// frame pointers is asked for only where code without call-frame information turns up (Go, JIT): on
// other code it costs page faults and finds rubbish. Threads: the consumer's.
#pragma once

#include <cstdint>

#include "capture/perf/event_set.h"
#include "unwind/unwinder.h"

namespace assay::session {

class StackPolicy {
 public:
  explicit StackPolicy(capture::EventSet& events) : events_(events) {}
  // With the counts so far; called about once a second.
  void reconsider(const unwind::UnwindStats& stats, uint64_t frame_pointer_stacks);

 private:
  capture::EventSet& events_;
  uint64_t stacks_before_ = 0;
  uint64_t cut_before_ = 0;
  uint64_t frame_pointers_before_ = 0;
};

}  // namespace assay::session
