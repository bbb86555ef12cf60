#include "view/data/time_walk.h"

#include <algorithm>

namespace assay::view {
namespace {

// start + duration without overflow: both come from a file.
TimeNs end_of(const model::Wait& wait) {
  TimeNs end = 0;
  int64_t duration = std::max<int64_t>(0, wait.duration_ns);
  return __builtin_add_overflow(wait.start, duration, &end) ? INT64_MAX : end;
}

class Walk {
 public:
  Walk(RunIndex& run, const Selection& selection, const std::function<void(const Piece&)>& visit)
      : run_(run), selection_(selection), visit_(visit) {
    for (const model::Thread& thread : run.contents().threads) {
      covered_.push_back(std::max(thread.begin_ns, selection.begin_ns));
      end_.push_back(std::min(thread.end_ns, selection.end_ns));
    }
  }

  void add(const model::Wait& wait) {
    uint32_t thread = wait.thread.value;
    if (thread >= covered_.size() || !selection_.has_thread(wait.thread)) return;
    TimeNs wait_end = end_of(wait);
    TimeNs begin = std::max(wait.start, covered_[thread]);
    TimeNs end = std::min(wait_end, end_[thread]);
    if (begin >= end) return;
    ran(wait.thread, begin);
    covered_[thread] = end;
    NodeIndex node = run_.node_of(wait.stack);
    if (wait.has(model::WaitFlag::preempted) || wait.has(model::WaitFlag::new_thread)) {
      visit_({wait.thread, begin, end, kRunqueue, node, &wait, begin});
      return;
    }
    TimeNs runnable = end;
    if (wait.has(model::WaitFlag::runqueue_known)) {
      int64_t queued = std::clamp<int64_t>(wait.runqueue_ns, 0, wait_end - wait.start);
      runnable = std::clamp(wait_end - queued, begin, end);
    }
    if (runnable > begin) {
      visit_({wait.thread, begin, runnable, run_.waiting_state(wait), node, &wait, begin});
    }
    if (end > runnable) visit_({wait.thread, runnable, end, kRunqueue, node, &wait, begin});
  }

  void finish() {
    if (!run_.has_waits()) return;
    for (uint32_t thread = 0; thread < covered_.size(); ++thread) {
      if (selection_.has_thread({thread})) ran({thread}, end_[thread]);
    }
  }

 private:
  void ran(model::ThreadId thread, TimeNs until) {
    if (until > covered_[thread.value] && selection_.nodes.empty()) {
      ThreadState state =
          run_.seen(thread) ? kRunning : blocked_state(analysis::BlockKind::unknown);
      visit_({thread, covered_[thread.value], until, state, 0, nullptr, until});
    }
  }

  RunIndex& run_;
  const Selection& selection_;
  const std::function<void(const Piece&)>& visit_;
  std::vector<TimeNs> covered_, end_;  // by thread: how far its pieces reach, and may reach
};

}  // namespace

Result<void> walk_waits(RunIndex& run, const Selection& selection,
                        const std::function<void(const Piece&)>& visit) {
  Walk walk(run, selection, visit);
  auto status = selection.rows(run).for_each_wait(selection.range(),
                                                  [&](const model::Wait& wait) { walk.add(wait); });
  if (status) walk.finish();
  return status;
}

}  // namespace assay::view
