#include "session/lifecycle/lifecycle.h"

#include <algorithm>

namespace assay::session {

Result<EndReason> Lifecycle::run(CaptureSteps& steps) {
  auto ended = follow(steps);
  // A command that was held all the time ends with its launcher.
  if (!ended && target_.attached()) target_.stop_launched();
  return ended;
}

Result<EndReason> Lifecycle::follow(CaptureSteps& steps) {
  if (auto prepared = steps.prepare(); !prepared) return std::unexpected(prepared.error());
  auto found = target_.find([&](Phase phase, TimeNs since) { steps.show(phase, since); });
  if (!found) return std::unexpected(found.error());
  if (auto opened = steps.open(); !opened) return std::unexpected(opened.error());
  auto begin = steps.begin();
  if (!begin) return std::unexpected(begin.error());
  EndReason reason = poll_until_end(steps, *begin);
  steps.end(reason);
  target_.stop_launched();
  steps.finish(reason);
  return reason;
}

EndReason Lifecycle::poll_until_end(CaptureSteps& steps, TimeNs begin) {
  if (target_.is_launched()) lives_.follow({target_.pids().front()});
  TimeNs deadline = duration_ns_ > 0 ? begin + duration_ns_ : INT64_MAX;
  while (true) {
    TimeNs now = monotonic_ns();
    if (now >= deadline) return EndReason::time;
    if (stop_) return EndReason::interrupted;
    if (auto reason = steps.poll(now)) return *reason;
    if (LoadDriver* load = target_.load()) load->poll(now);
    lives_.wait(std::min({now + tick_ns_, deadline, steps.wake_by()}) - monotonic_ns());
  }
}

}  // namespace assay::session
