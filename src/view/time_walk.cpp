#include "view/time_walk.h"

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
  auto status = run.reader().for_each_wait({selection.begin_ns, selection.end_ns},
                                           [&](const model::Wait& wait) { walk.add(wait); });
  if (status) walk.finish();
  return status;
}

uint32_t bin_of(const Selection& selection, uint32_t bins, TimeNs time_ns) {
  auto length = static_cast<unsigned __int128>(selection.end_ns - selection.begin_ns);
  if (length == 0 || time_ns <= selection.begin_ns) return 0;
  auto offset = static_cast<unsigned __int128>(time_ns - selection.begin_ns);
  return static_cast<uint32_t>(std::min<unsigned __int128>(offset * bins / length, bins - 1));
}

void for_each_bin(const Selection& selection, uint32_t bins, TimeNs begin_ns, TimeNs end_ns,
                  const std::function<void(uint32_t bin, int64_t ns)>& visit) {
  uint32_t first = bin_of(selection, bins, begin_ns);
  uint32_t last = bin_of(selection, bins, end_ns);
  auto length = static_cast<__int128>(selection.end_ns - selection.begin_ns);
  for (uint32_t bin = first; bin <= last; ++bin) {
    // The first moment that bin_of() gives to the next bin.
    auto border = static_cast<TimeNs>((length * (bin + 1) + bins - 1) / bins) + selection.begin_ns;
    TimeNs until = bin == last ? end_ns : std::min(border, end_ns);
    if (until > begin_ns) visit(bin, until - begin_ns);
    begin_ns = std::max(begin_ns, until);
  }
}

}  // namespace assay::view
