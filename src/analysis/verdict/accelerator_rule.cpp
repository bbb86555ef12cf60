// The rules about accelerators: a device that is full is the limit, however calm the CPUs are; and
// one that the target's threads wait for, asleep or spinning, is what to look at.
#include <algorithm>

#include <fmt/format.h>

#include "analysis/verdict/verdict.h"
#include "base/units.h"
#include "model/display_name.h"

namespace assay::analysis {
namespace {

constexpr double kFull = 0.90;       // of the time the device computes
constexpr double kWaits = 0.20;      // of busy time, asleep or spinning
constexpr double kMostly = 0.50;     // of CPU time, spinning for a device
constexpr double kCpuIsFull = 0.85;  // of the usable CPUs, without spinning for a device

double of(const std::optional<double>& number) {
  return number.value_or(0);
}

struct DeviceWaits {
  double asleep = 0, spinning = 0;  // of busy time
  double all() const { return asleep + spinning; }
};

DeviceWaits waits_of(const Vitals& v) {
  return {of(v.accelerator), of(v.accelerator_cpu) * of(v.running)};
}

bool is_full(const Vitals& v) {
  return of(v.accelerator_busy) >= kFull;
}

bool is_library(const std::string& module) {
  return module.starts_with("lib") || module.find(".so") != std::string::npos ||
         module.starts_with('[');
}

bool is_interpreter(const std::string& module) {
  return module.starts_with("python") || module.starts_with("libpython") || module == "node" ||
         module == "java" || module.starts_with("libjvm");
}

// Functions without a symbol are called by their address: "libx.so!fn_1400".
bool has_name(const FrameText& frame) {
  return frame.named && frame.function.find("!fn_") == std::string::npos;
}

// What a person calls his own code: not a library's, not an interpreter's.
bool is_own(const FrameText& frame) {
  bool outside =
      frame.kind != CodeKind::user || is_library(frame.module) || is_interpreter(frame.module);
  bool of_language = frame.function.starts_with("std::") || frame.function.starts_with("Py") ||
                     frame.function.starts_with("_Py");
  return has_name(frame) && !outside && !of_language;
}

// The call that waits for the device, and the code that made it: the program's own where it has a
// name, else the outermost function of a library before the program begins (an interpreter).
struct Waiter {
  std::string call, code;
};
Waiter waiter_in(const std::vector<FrameText>& frames) {
  Waiter waiter;
  std::string of_library;
  for (const FrameText& frame : frames) {
    if (frame.kind != CodeKind::user) continue;
    bool waits = frame.named && is_accelerator_call(frame.function);
    if (waits) waiter.call = model::short_name(frame.function);
    if (is_own(frame)) {
      waiter.code = model::short_name(frame.function);
      return waiter;
    }
    // An interpreter: its frames say nothing of the program that it runs.
    bool outside = !is_library(frame.module) || is_interpreter(frame.module);
    if (outside && !of_library.empty()) break;
    bool is_vendors = waits || is_accelerator_module(frame.module);
    if (is_vendors) of_library.clear();  // what it called itself
    if (has_name(frame) && !is_vendors) of_library = model::short_name(frame.function);
  }
  waiter.code = of_library;
  return waiter;
}

// By the longest wait, or by the hottest spinning, whichever is more.
Waiter waiter_of(const Basis& basis, const DeviceWaits& waits) {
  auto asleep = std::ranges::find_if(basis.run.off_cpu.paths, [](const WaitSummary& wait) {
    return !wait.idle && wait.kind == BlockKind::accelerator;
  });
  auto spinning = std::ranges::find_if(basis.run.on_cpu.paths, [](const HotPath& path) {
    return std::ranges::any_of(path.frames, [](const FrameText& frame) {
      return frame.named && is_accelerator_call(frame.function);
    });
  });
  bool has_asleep = asleep != basis.run.off_cpu.paths.end();
  bool has_spinning = spinning != basis.run.on_cpu.paths.end();
  if (has_spinning && (waits.spinning > waits.asleep || !has_asleep))
    return waiter_in(spinning->frames);
  return has_asleep ? waiter_in(asleep->frames) : Waiter{};
}

std::string waits_text(const Basis& basis, const DeviceWaits& waits) {
  if (waits.all() < 0.01) return "no thread of the target is seen waiting for it";
  Waiter who = waiter_of(basis, waits);
  std::string text =
      fmt::format("{} of busy time is spent waiting for it", format_percent(waits.all()));
  if (waits.spinning >= 0.01)
    text += fmt::format(", {}on the CPU, spinning",
                        waits.spinning >= waits.asleep ? "mostly " : "partly ");
  if (!who.call.empty()) text += " in " + who.call;
  if (!who.code.empty()) text += ", called by " + who.code;
  return text;
}

// The header of the report has all of them.
std::string short_figures_of(const AcceleratorUse& device) {
  std::string text = device.about.device;
  if (device.busy) text += fmt::format(" busy {}", format_percent(*device.busy));
  if (device.throttled.value_or(0) > 0)
    text += fmt::format(", held down by power or heat {} of the time",
                        format_percent(*device.throttled));
  return text;
}

Claim claim_of(const Basis& basis, double sure) {
  const Vitals& v = basis.vitals;
  DeviceWaits waits = waits_of(v);
  const AcceleratorUse* device = busiest_accelerator(basis.run.accelerators);
  std::string which = "how busy the device is, is not known";
  if (device) {
    which = fmt::format("{} is {} busy", device->name(), format_percent(*device->busy));
    if (device->power_w) which += fmt::format(" at {:.0f} W", *device->power_w);
    if (!is_full(v)) which += ", so requests do not keep it busy, one waits after the other";
  }
  Claim claim{VerdictKind::accelerator,
              fmt::format("{}: {}; {}.", describe(VerdictKind::accelerator).stem, which,
                          waits_text(basis, waits)),
              sure,
              {}};
  for (const AcceleratorUse& one : basis.run.accelerators) {
    if (one.about.used_by_target) claim.numbers.push_back(short_figures_of(one));
  }
  claim.numbers.push_back(fmt::format("waiting for it asleep {}, spinning {} of busy time",
                                      format_percent(waits.asleep),
                                      format_percent(waits.spinning)));
  claim.numbers.push_back(fmt::format("{:.2f} CPUs in use, {} of that spinning for the device",
                                      of(v.cpus_used), format_percent(of(v.accelerator_cpu))));
  return claim;
}

// CPUs are what threads lack most: one that is kept off the CPU sees late that the device is done.
bool lacks_cpus(const Vitals& v, const DeviceWaits& waits) {
  return of(v.runqueue) > waits.all();
}

// Of a device that is not known to be full.
double confidence(const Vitals& v, const DeviceWaits& waits) {
  return std::clamp(0.6 + waits.all() / kWaits - 1, 0.6, v.accelerator_busy ? 0.75 : 0.7);
}

}  // namespace

std::optional<Claim> full_accelerator(const Basis& basis) {
  const Vitals& v = basis.vitals;
  DeviceWaits waits = waits_of(v);
  if (is_full(v)) return claim_of(basis, waits.all() >= kWaits ? 0.95 : 0.75);
  // Threads that spin look busy: before the rules about CPUs.
  bool cpu_is_full = of(v.utilisation) * (1 - of(v.accelerator_cpu)) >= kCpuIsFull;
  if (waits.spinning < kWaits || cpu_is_full || lacks_cpus(v, waits)) return {};
  return claim_of(basis, confidence(v, waits));
}

std::optional<Claim> awaited_accelerator(const Basis& basis) {
  DeviceWaits waits = waits_of(basis.vitals);
  if (waits.all() < kWaits || lacks_cpus(basis.vitals, waits) || full_accelerator(basis)) return {};
  return claim_of(basis, confidence(basis.vitals, waits));
}

void drop_what_devices_explain(const Vitals& v, std::vector<Claim>& found) {
  bool claimed = std::ranges::any_of(
      found, [](const Claim& claim) { return claim.kind == VerdictKind::accelerator; });
  // CPU time without what spins for the device.
  bool cpu_is_full = of(v.utilisation) * (1 - of(v.accelerator_cpu)) >= kCpuIsFull;
  std::erase_if(found, [&](const Claim& claim) {
    Limit limit = describe(claim.kind).limit;
    bool of_cpu = limit == Limit::cpu && claim.kind != VerdictKind::throttled &&
                  claim.kind != VerdictKind::scheduler;
    bool spins = of(v.accelerator_cpu) >= (claimed ? kWaits : kMostly) && !cpu_is_full;
    return (claimed && limit == Limit::load) || (of_cpu && spins);
  });
}

}  // namespace assay::analysis
