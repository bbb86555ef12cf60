#include "session/record/event_choice.h"

#include <algorithm>

namespace assay::session {
namespace {

// The kernel throttles events that sample faster than its limit, which would look like idle time.
int allowed_frequency(const RecordOptions& options, const os::Capabilities& machine) {
  auto most = static_cast<int>(std::min<uint64_t>(machine.max_sample_rate, INT32_MAX));
  return most > 0 ? std::min(options.frequency_hz, most) : options.frequency_hz;
}

Result<EventChoice> open_bpf(const RecordOptions& record, const os::Capabilities& machine) {
  if (record.per_task || record.unprivileged)
    return fail("it needs all CPUs and privilege, and other was asked for");
  BpfBackend::Options options;
  options.frequency_hz = allowed_frequency(record, machine);
  options.children = record.target.include_children;
  options.wakeups = record.wakeups;
  options.check = record.bpf_check;
  auto backend = BpfBackend::open(machine, options);
  if (!backend) return std::unexpected(backend.error());
  EventChoice choice;
  choice.bpf = std::move(*backend);
  choice.events = choice.bpf->take_side_band();
  return choice;
}

Result<EventChoice> open_perf(const RecordOptions& record, const os::Capabilities& machine,
                              const std::function<std::vector<pid_t>()>& list_threads) {
  capture::EventOptions options;
  options.frequency_hz = allowed_frequency(record, machine);
  options.children = record.target.include_children;
  options.wakeups = record.wakeups;
  options.cpus = machine.online_cpus;
  options.probe_switches = true;
  options.global_pids = machine.initial_pid_namespace;
  if (record.per_task) options.first_tier = capture::Tier::per_task;
  if (record.unprivileged) options.first_tier = capture::Tier::user_only;
  auto events = capture::EventSet::open(os::real_perf_kernel(), options, list_threads);
  if (!events) return std::unexpected(events.error());
  EventChoice choice;
  choice.events = std::move(*events);
  return choice;
}

Result<EventChoice> open_best(const RecordOptions& options, const os::Capabilities& machine,
                              const std::function<std::vector<pid_t>()>& list_threads) {
  if (options.backend == Backend::perf) return open_perf(options, machine, list_threads);
  auto bpf = open_bpf(options, machine);
  if (bpf || options.backend == Backend::bpf) return bpf;
  auto perf = open_perf(options, machine, list_threads);
  if (perf) {
    perf->notes.push_back(
        {"backend",
         "perf events record the switches, since BPF cannot: " + bpf.error().what +
             "; that costs the target more at every switch, and locks have no holders",
         bpf.error().remedy});
  }
  return perf;
}

}  // namespace

Result<EventChoice> choose_events(const RecordOptions& options, const os::Capabilities& machine,
                                  const std::function<std::vector<pid_t>()>& list_threads) {
  auto choice = open_best(options, machine, list_threads);
  if (!choice) return choice;
  int allowed = allowed_frequency(options, machine);
  if (allowed < options.frequency_hz) {
    choice->notes.push_back(
        {"frequency",
         fmt::format("the kernel allows {} samples a second at most: {} were asked for", allowed,
                     options.frequency_hz),
         fmt::format("sudo sysctl -w kernel.perf_event_max_sample_rate={}", options.frequency_hz)});
  }
  for (const model::QualityNote& note : choice->events->notes()) choice->notes.push_back(note);
  return choice;
}

}  // namespace assay::session
