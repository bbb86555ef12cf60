// What a capture says of itself while it runs and when it has ended, whatever it captures.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "model/run_info.h"
#include "os/process/launch.h"
#include "session/lifecycle/end_reason.h"

namespace assay::session {

enum class Phase : uint8_t {
  preparing,
  waiting_for_server,  // that the load is for
  warming_up,
  waiting_for_detach,  // an earlier Assay's sampler is being taken out of the target
  recording,
  sampling,
  naming,
};

constexpr std::string_view phase_text(Phase phase) {
  switch (phase) {
    case Phase::preparing:
      return "preparing";
    case Phase::waiting_for_server:
      return "waiting for the server";
    case Phase::warming_up:
      return "warming up";
    case Phase::waiting_for_detach:
      return "waiting";
    case Phase::recording:
      return "recording";
    case Phase::sampling:
      return "sampling";
    case Phase::naming:
      return "naming";
  }
  return "";
}

struct CaptureProgress {
  TimeNs now = 0;
  TimeNs begin = 0;  // of the window; while it warms up, when that is over
  int64_t duration_ns = 0;
  Phase phase = Phase::preparing;
};

struct CaptureOutcome {
  model::RunInfo info;
  EndReason end = EndReason::time;
  std::optional<os::ExitStatus> launched_exit;  // of a launched command that has ended
  std::optional<Error> write_error;             // the disk filled up: the run is readable so far
};

}  // namespace assay::session
