#include "analysis/accounted/thread_cover.h"

namespace assay::analysis {

ThreadCover::ThreadCover(const model::Thread& thread, const model::TimeSpan& range)
    : life_(model::TimeSpan{thread.begin_ns, thread.end_ns}.within(range)) {
  life_.end_ns = std::max(life_.begin_ns, life_.end_ns);
  covered_until_ns_ = life_.begin_ns;
}

CoveredWait ThreadCover::add(const model::Wait& wait) {
  model::WaitPieces pieces(wait);
  CoveredWait covered;
  covered.whole = pieces.whole();
  // Of most waits, millions in a run, nothing is cut off.
  if (covered.whole.begin_ns < covered_until_ns_ || covered.whole.end_ns > life_.end_ns) {
    pieces = pieces.within(life_);
    model::TimeSpan span = pieces.whole();
    covered.overlap_ns =
        model::TimeSpan{span.begin_ns, std::min(span.end_ns, covered_until_ns_)}.ns();
    pieces = pieces.within(rest());
  }
  if (pieces.empty()) return covered;
  covered.ran_before = {covered_until_ns_, pieces.whole().begin_ns};
  covered.pieces = pieces;
  covered_until_ns_ = pieces.whole().end_ns;
  return covered;
}

}  // namespace assay::analysis
