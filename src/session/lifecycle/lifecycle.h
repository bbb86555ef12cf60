// Lifecycle: the course of one capture, from looking for its target to its last word; the same for
// every kind of capture.
//
//   prepare   the capture says what it needs and whether it may begin at all
//   find      the target is found or launched, load started, both warmed up     (RunningTarget)
//   open      the capture opens its events and files
//   begin     the window opens
//   poll      again and again, until the time is over, a stop is asked for, or the capture says why
//             it must end
//   end       the window closes, with the reason
//   finish    a launched command has been ended, where that was asked for; the rest of the work
//
// In: the target, the duration, and a CaptureSteps that does the capturing. Out: why it ended.
// A duration of 0 has no end by time. Threads: the caller's, which makes all the calls. Failures:
// those of a step, which ends the course; a command launched for it is ended then, too, unless it
// is its own master by now (nothing drives it, and the user did not stop the capture).
#pragma once

#include <atomic>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "session/lifecycle/end_reason.h"
#include "session/lifecycle/life_watch.h"
#include "session/lifecycle/running_target.h"

namespace assay::session {

class CaptureSteps {
 public:
  virtual ~CaptureSteps() = default;
  virtual Result<void> prepare() = 0;
  virtual Result<void> open() = 0;
  virtual Result<TimeNs> begin() = 0;  // when the window began
  // What there is to do now; a reason when the capture must end.
  virtual std::optional<EndReason> poll(TimeNs now) = 0;
  // A moment before which poll() must be called again; it is called at every tick anyway.
  virtual TimeNs wake_by() const { return INT64_MAX; }
  virtual void end(EndReason reason) = 0;
  virtual void finish(EndReason) {}
  // `since`: when the phase began; of warming up, when it ends.
  virtual void show(Phase, TimeNs /*since*/) {}
};

class Lifecycle {
 public:
  struct Plan {
    TargetRequest target;
    int64_t duration_ns = 0;
    int64_t tick_ns = 100 * kNsPerMs;  // how often the capture is polled
  };

  Lifecycle(Plan plan, const std::atomic<bool>& stop, const os::ProcFs& proc)
      : duration_ns_(plan.duration_ns),
        tick_ns_(plan.tick_ns),
        stop_(stop),
        target_(std::move(plan.target), stop, proc) {}

  Result<EndReason> run(CaptureSteps& steps);

  RunningTarget& target() { return target_; }
  const RunningTarget& target() const { return target_; }
  // Waiting for the next tick ends early when one of these processes does. It follows a launched
  // command by itself.
  LifeWatch& lives() { return lives_; }

 private:
  Result<EndReason> follow(CaptureSteps& steps);
  EndReason poll_until_end(CaptureSteps& steps, TimeNs begin);

  const int64_t duration_ns_;
  const int64_t tick_ns_;
  const std::atomic<bool>& stop_;
  RunningTarget target_;
  LifeWatch lives_;
};

}  // namespace assay::session
