#include "model/time/wait_pieces.h"

namespace assay::model {
namespace {

TimeNs end_of(const Wait& wait) {
  TimeNs end = 0;
  int64_t duration = std::max<int64_t>(0, wait.duration_ns);
  return __builtin_add_overflow(wait.start, duration, &end) ? INT64_MAX : end;
}

}  // namespace

WaitPieces::WaitPieces(const Wait& wait) {
  TimeNs end = end_of(wait);
  bool queued = waits_for_cpu_only(wait);
  measured_ = queued || wait.has(WaitFlag::runqueue_known);
  TimeNs runnable_at = end, woken_at = end;
  if (queued) {
    runnable_at = woken_at = wait.start;
  } else if (measured_) {
    runnable_at = end - std::clamp<int64_t>(wait.runqueue_ns, 0, end - wait.start);
    woken_at = runnable_at - std::clamp<int64_t>(wait.wakeup_ns, 0, runnable_at - wait.start);
  }
  borders_ = {wait.start, woken_at, runnable_at, end};
}

WaitPieces WaitPieces::within(const TimeSpan& span) const {
  WaitPieces cut = *this;
  for (TimeNs& border : cut.borders_) border = span.nearest(border);
  return cut;
}

}  // namespace assay::model
