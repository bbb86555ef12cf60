#include "capture/devices/accelerator_counters.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::capture {
namespace {

constexpr double kMilli = 1000;

// Whether the library's list of processes has one of the target's. It lists processes of its own
// namespace, or none at all where that is another one.
bool lists_target(const std::vector<uint32_t>& pids, const LiveTasks& tasks) {
  return std::ranges::any_of(tasks.processes, [&](const LiveProcess& process) {
    return std::ranges::find(pids, static_cast<uint32_t>(process.pid)) != pids.end();
  });
}

bool same(const model::Accelerator& a, const model::Accelerator& b) {
  return a.name == b.name && a.memory_bytes == b.memory_bytes &&
         a.power_limit_w == b.power_limit_w && a.used_by_target == b.used_by_target;
}

}  // namespace

void AcceleratorCounters::poll(const LiveTasks& tasks) {
  const std::set<std::string>& open = parts_.owners.accelerators();
  for (const std::string& device : open) {
    if (!known_.contains(device) && !device.starts_with("nvidia"))
      write_facts({device, "", {}, {}, true});
  }
  TimeNs now = parts_.clock();
  if (auto answer = reader_.take(now)) {
    for (const DeviceReading& reading : answer->devices) write(reading, answer->time, tasks);
  }
  note_problem();
  bool wanted = parts_.always || std::ranges::any_of(open, [](const std::string& device) {
                  return device.starts_with("nvidia");
                });
  if (wanted) reader_.ask(now);
}

void AcceleratorCounters::write(const DeviceReading& reading, TimeNs time, const LiveTasks& tasks) {
  bool uses = reading.pids && lists_target(*reading.pids, tasks);
  if (!uses && (!reading.pids || reading.pids->empty()))
    uses = parts_.owners.accelerators().contains(reading.device);
  auto before = known_.find(reading.device);
  // What used it once keeps its claim: a process that has ended was the target's all the same.
  if (before != known_.end()) uses |= before->second.used_by_target;
  model::Accelerator about{reading.device, reading.name, {}, {}, uses};
  if (reading.memory_total) about.memory_bytes = static_cast<uint64_t>(*reading.memory_total);
  if (reading.power_limit_mw)
    about.power_limit_w = static_cast<double>(*reading.power_limit_mw) / kMilli;
  if (before == known_.end() || !same(before->second, about)) write_facts(about);
  put(model::kAcceleratorBusy, "milli", reading.device, time, reading.busy_milli);
  put(model::kAcceleratorMemory, "bytes", reading.device, time, reading.memory_used);
  put(model::kAcceleratorPower, "milli", reading.device, time, reading.power_mw);
  put(model::kAcceleratorThrottled, "count", reading.device, time, reading.throttled);
  put(model::kAcceleratorTemperature, "count", reading.device, time, reading.temperature_c);
}

void AcceleratorCounters::put(const char* name, const char* unit, const std::string& device,
                              TimeNs time, const std::optional<int64_t>& value) {
  if (!value) return;
  Track& track = tracks_[fmt::format("{} {}", name, device)];
  parts_.book.put(track, {model::SeriesScope::host, model::SeriesKind::gauge, name, unit}, 0,
                  device, time, *value);
}

void AcceleratorCounters::write_facts(const model::Accelerator& accelerator) {
  for (const model::Fact& fact : model::to_facts(accelerator)) parts_.book.sink().add_fact(fact);
  known_[accelerator.device] = accelerator;
}

void AcceleratorCounters::note_problem() {
  if (noted_ || reader_.problem().empty()) return;
  noted_ = true;
  parts_.book.sink().add_note(
      {"accelerators",
       fmt::format("how busy the target's accelerators are is not known: {}", reader_.problem()),
       ""});
}

}  // namespace assay::capture
