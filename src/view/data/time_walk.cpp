#include "view/data/time_walk.h"

#include "analysis/accounted/thread_cover.h"

namespace assay::view {
namespace {

ThreadState shown_as(model::WaitState state, const analysis::AccountedWait& wait) {
  switch (state) {
    case model::WaitState::blocked:
      return RunIndex::waiting_state(wait);
    case model::WaitState::wakeup:
      return blocked_state(analysis::BlockKind::wakeup);
    case model::WaitState::runqueue:
      break;
  }
  return kRunqueue;
}

class Walk {
 public:
  Walk(RunIndex& run, const Selection& selection, const std::function<void(const Piece&)>& visit)
      : run_(run), selection_(selection), visit_(visit) {
    for (const model::Thread& thread : run.contents().threads) {
      covers_.emplace_back(thread, model::TimeSpan{selection.begin_ns, selection.end_ns});
    }
  }

  void add(const analysis::AccountedWait& accounted) {
    const model::Wait& wait = accounted.wait;
    analysis::CoveredWait covered = covers_[wait.thread.value].add(wait);
    if (covered.pieces.empty()) return;
    ran(wait.thread, covered.ran_before);
    NodeIndex node = run_.node_of(wait.stack);
    TimeNs begin = covered.pieces.whole().begin_ns;
    covered.pieces.for_each([&](model::WaitState state, const model::TimeSpan& piece) {
      visit_({wait.thread, piece.begin_ns, piece.end_ns, shown_as(state, accounted), node, &wait,
              begin});
    });
  }

  void finish() {
    if (!run_.has_waits()) return;
    for (uint32_t thread = 0; thread < covers_.size(); ++thread) {
      if (selection_.has_thread({thread})) ran({thread}, covers_[thread].rest());
    }
  }

 private:
  void ran(model::ThreadId thread, const model::TimeSpan& gap) {
    if (gap.empty() || !selection_.nodes.empty()) return;
    ThreadState state = run_.seen(thread) ? kRunning : blocked_state(analysis::BlockKind::unknown);
    visit_({thread, gap.begin_ns, gap.end_ns, state, 0, nullptr, gap.end_ns});
  }

  RunIndex& run_;
  const Selection& selection_;
  const std::function<void(const Piece&)>& visit_;
  std::vector<analysis::ThreadCover> covers_;  // by thread
};

}  // namespace

Result<void> walk_waits(RunIndex& run, const Selection& selection,
                        const std::function<void(const Piece&)>& visit) {
  Walk walk(run, selection, visit);
  auto status = run.accounted().for_each_wait(
      selection.rows(run), selection.range(),
      [&](const model::Wait& wait) { return selection.has_thread(wait.thread); },
      [&](const analysis::AccountedWait& wait) { walk.add(wait); });
  if (status) walk.finish();
  return status;
}

}  // namespace assay::view
