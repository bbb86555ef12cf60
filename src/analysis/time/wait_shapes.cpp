#include "analysis/time/wait_shapes.h"

#include "model/time/wait_pieces.h"

namespace assay::analysis {
namespace {

// Woken, looked, and slept again at the same place: no work is done in so short a time.
constexpr int64_t kNothingDoneNs = 10 * kNsPerUs;
constexpr uint64_t kEnough = 100;

bool in_milliseconds(int64_t ns, int64_t from, int64_t to) {
  return ns >= from * kNsPerMs && ns <= to * kNsPerMs;
}

}  // namespace

WaitShapes::WaitShapes(const CallTree& tree, size_t threads) : tree_(tree), last_(threads) {}

void WaitShapes::add(const model::Wait& wait, BlockKind kind, const PlacedWait& placed) {
  if (wait.thread.value >= last_.size()) return;
  model::WaitPieces pieces(wait);
  runqueue_ns_ += pieces.ns(model::WaitState::runqueue);
  if (model::waits_for_cpu_only(wait)) {
    preempted_ns_ += pieces.whole().ns();
    return;
  }
  Last& last = last_[wait.thread.value];
  PathIndex path = tree_.path_of(wait.stack);
  bool empty = last.set && last.path == path && wait.start - last.end_ns < kNothingDoneNs;
  bool polling = kind == BlockKind::poll || kind == BlockKind::network_receive;
  bool sleeping = kind == BlockKind::condition || kind == BlockKind::futex;
  polls_ += polling;
  empty_polls_ += polling && empty;
  conditions_ += sleeping;
  empty_conditions_ += sleeping && empty;
  if (polling && placed.blocked_ns > kNsPerMs) {
    ++socket_waits_;
    // Linux delays acknowledgements for 40 ms, others and retransmission begin at 200 ms.
    delayed_ +=
        in_milliseconds(placed.blocked_ns, 38, 45) || in_milliseconds(placed.blocked_ns, 198, 212);
  }
  last = {pieces.whole().end_ns, path, true};
}

WaitShapeShares WaitShapes::finish() const {
  WaitShapeShares shares;
  auto share = [](uint64_t part, uint64_t whole) -> std::optional<double> {
    if (whole < kEnough) return {};
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  shares.empty_polls = share(empty_polls_, polls_);
  shares.empty_wakeups = share(empty_conditions_, conditions_);
  if (socket_waits_ >= 20) {
    shares.delayed_ack = static_cast<double>(delayed_) / static_cast<double>(socket_waits_);
  }
  if (runqueue_ns_ > 0) {
    shares.preempted = static_cast<double>(preempted_ns_) / static_cast<double>(runqueue_ns_);
  }
  return shares;
}

}  // namespace assay::analysis
