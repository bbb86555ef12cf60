// CopySize: keeps the stack that is copied at context switches as small as complete stacks allow.
//
// It grows when too many walks end where the copy ends; joins with earlier stacks make up for the few
// that are deeper. Threads: the consumer's.
#pragma once

#include <cstdint>

#include "capture/perf/event_set.h"
#include "unwind/unwinder.h"

namespace assay::session {

class CopySize {
 public:
  explicit CopySize(capture::EventSet& events) : events_(events) {}
  void reconsider(const unwind::UnwindStats& stats);

 private:
  capture::EventSet& events_;
  uint64_t stacks_before_ = 0;
  uint64_t cut_before_ = 0;
};

}  // namespace assay::session
