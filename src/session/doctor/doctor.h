// Doctor: every precondition of a good capture, tried rather than inferred wherever that is safe.
//
// It opens the very events and rings that a capture would open, never enables them, and closes
// them; reads the target's /proc files and program as a capture would. Nothing on the machine
// changes and the target does not notice. In: the machine (its files and its perf door are
// parameters, so tests hand in fakes) and perhaps a target; out: Checks in the order people should
// read them. Failures become Checks. Threads: one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "capture/perf/event_set.h"
#include "model/check.h"
#include "os/machine/capabilities.h"
#include "os/events/perf_event.h"
#include "os/process/procfs.h"
#include "os/events/tracefs.h"
#include "session/record/bpf_backend.h"
#include "target/target.h"

namespace assay::session {

struct DoctorEnvironment {
  os::SystemRoots roots;
  os::PerfKernel* perf = &os::real_perf_kernel();
  std::function<Result<os::Tracepoint>()> waking_tracepoint = [] {
    return os::read_tracepoint("sched/sched_waking");
  };
  // Loads the BPF programs and drops them.
  std::function<Result<void>(const os::Capabilities&)> bpf = try_bpf;
  pid_t self = 0;  // Assay's own pid
};

// `spec` null: the machine alone. A target that cannot be resolved is a Check that says why.
std::vector<model::Check> run_doctor(const DoctorEnvironment& environment,
                                     const target::TargetSpec* spec);

// The parts of it.
struct EventProbe {
  // Null when no event could be opened; then `error` says why.
  std::unique_ptr<capture::EventSet> events;
  Error error;
  bool tracepoint_read = false;
};
EventProbe probe_events(const DoctorEnvironment& environment, const os::Capabilities& machine,
                        const std::vector<pid_t>& tids);
std::vector<model::Check> check_machine(const os::Capabilities& machine, const EventProbe& probe,
                                        size_t target_threads, const std::string& assay_path);
model::Check check_bpf(const Result<void>& tried);
std::vector<model::Check> check_target(const target::ResolvedTarget& target, const os::ProcFs& proc,
                                       const os::Capabilities& machine);

}  // namespace assay::session
