// walk_waits(): the waits of a selection as pieces of time in one state each, and the gaps between
// them, in which the thread ran.
//
// A thread's pieces do not overlap and, from the later of its beginning and the selection's to the
// earlier of their ends, leave nothing out. Of a wait whose wake-up was seen the last part is
// run-queue time; a preempted or new thread waits on the run queue only. Without any waits in the
// run there are no gaps either: samples are then all that is known. Failures: the reader's.
#pragma once

#include <functional>

#include "base/result.h"
#include "view/selection.h"

namespace assay::view {

struct Piece {
  model::ThreadId thread;
  TimeNs begin_ns = 0;
  TimeNs end_ns = 0;
  ThreadState state = kRunning;
  NodeIndex node = 0;                 // 0 for a gap and where no stack is known
  const model::Wait* wait = nullptr;  // null for a gap
  TimeNs wait_begin_ns = 0;           // where the wait's first piece in the selection begins
  int64_t ns() const { return end_ns - begin_ns; }
};

Result<void> walk_waits(RunIndex& run, const Selection& selection,
                        const std::function<void(const Piece&)>& visit);

}  // namespace assay::view
