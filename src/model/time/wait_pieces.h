// WaitPieces: a wait as pieces of time, one after another, each in one state.
//
// Every reader of waits divides them here. The pieces cover the whole wait and do not overlap; a
// piece may be empty. A preempted thread and a new one wait on the run queue only. Where the
// wake-up was seen, the last part of the wait is run-queue time; before it lies the wake-up itself:
// the interrupt to another CPU and that CPU's way out of idle, while no CPU was lacking. Otherwise
// the border between the states is not known: all of the wait counts as blocked, and measured() is
// false.
// In: a Wait, whose numbers may come from a file and are not trusted. Out: spans that lie inside
// the wait. Pure, never fails.
#pragma once

#include <array>
#include <cstddef>

#include "model/sample.h"
#include "model/time/time_span.h"

namespace assay::model {

// A preempted thread and a new one do not block: all they wait for is a CPU.
inline bool waits_for_cpu_only(const Wait& wait) {
  return wait.has(WaitFlag::preempted) || wait.has(WaitFlag::new_thread);
}

// In the order of time.
enum class WaitState : uint8_t { blocked, wakeup, runqueue };
inline constexpr size_t kWaitStateCount = 3;

class WaitPieces {
 public:
  WaitPieces() = default;  // of no wait: all pieces are empty
  explicit WaitPieces(const Wait& wait);

  // The same pieces, each cut to what lies in the span.
  WaitPieces within(const TimeSpan& span) const;

  TimeSpan whole() const { return {borders_.front(), borders_.back()}; }
  TimeSpan piece(WaitState state) const {
    auto at = static_cast<size_t>(state);
    return {borders_[at], borders_[at + 1]};
  }
  int64_t ns(WaitState state) const { return piece(state).ns(); }
  bool empty() const { return whole().empty(); }
  // False: the wake-up was not seen, so the end of `blocked` may be run-queue time.
  bool measured() const { return measured_; }

  // visit(state, span) for every piece that is not empty, in the order of time.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (size_t i = 0; i < kWaitStateCount; ++i) {
      auto state = static_cast<WaitState>(i);
      if (TimeSpan span = piece(state); !span.empty()) visit(state, span);
    }
  }

 private:
  std::array<TimeNs, kWaitStateCount + 1> borders_{};  // piece i lies between border i and i + 1
  bool measured_ = true;
};

}  // namespace assay::model
