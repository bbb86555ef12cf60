// Which events record a capture: BPF programs where this machine allows them, else perf events.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "capture/perf/event_set.h"
#include "model/run_info.h"
#include "os/machine/capabilities.h"
#include "session/record/bpf_backend.h"
#include "session/record/recorder.h"

namespace assay::session {

struct EventChoice {
  std::unique_ptr<capture::EventSet> events;  // with BPF: the side band
  std::unique_ptr<BpfBackend> bpf;            // null: perf events alone
  std::vector<model::QualityNote> notes;      // what this choice costs the evidence, and the remedy
};

// Opens the best that the options ask for and the machine allows; nothing is enabled yet. Fails
// when nothing can be had, or not what was insisted on. `list_threads` is asked where events are
// per task.
Result<EventChoice> choose_events(const RecordOptions& options, const os::Capabilities& machine,
                                  const std::function<std::vector<pid_t>()>& list_threads);

}  // namespace assay::session
