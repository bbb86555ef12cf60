// ThreadCover: how far the waits of one thread cover its part of a time range.
//
// A thread has one state at a time. In: its waits, in the order of time. Out: of each wait the
// pieces that lie in the range, in the thread's life and after the wait before it, and the gap
// before them, in which the thread ran. Pieces and gaps follow one another and leave nothing out.
// Plain value. Failures: none; an overlap with an earlier wait is cut off and told.
#pragma once

#include "model/process.h"
#include "model/time/wait_pieces.h"

namespace assay::analysis {

struct CoveredWait {
  model::TimeSpan whole;       // the wait as it was recorded
  model::WaitPieces pieces;    // empty: nothing of the wait is left
  model::TimeSpan ran_before;  // since the wait before it; only where pieces are left
  int64_t overlap_ns = 0;      // of the wait, inside the range, that earlier waits cover

  bool is_cut() const { return pieces.whole() != whole; }
};

class ThreadCover {
 public:
  ThreadCover() = default;
  ThreadCover(const model::Thread& thread, const model::TimeSpan& range);

  CoveredWait add(const model::Wait& wait);

  // The thread's life inside the range.
  const model::TimeSpan& life() const { return life_; }
  // What lies after its last wait.
  model::TimeSpan rest() const { return {covered_until_ns_, life_.end_ns}; }

 private:
  model::TimeSpan life_;
  TimeNs covered_until_ns_ = 0;
};

}  // namespace assay::analysis
