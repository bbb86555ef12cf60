#include "capture/devices/nvml.h"

#include <array>

#include <dlfcn.h>

namespace assay::capture {
namespace {

// As nvml.h has them.
using Status = int;
using Handle = void*;
constexpr Status kSuccess = 0, kTooSmall = 7;
constexpr unsigned kOfTheChip = 0;  // which temperature
// Reasons for lower clocks: power cap, slowdown by hardware, heat (software, hardware), power
// brake.
constexpr unsigned long long kThrottling = 0x04 | 0x08 | 0x20 | 0x40 | 0x80;
constexpr unsigned kMostDevices = 64, kMostProcesses = 1024;

struct Utilisation {
  unsigned gpu, memory;  // percent
};
struct Memory {
  unsigned long long total, free, used;
};
struct Process {  // of the calls …_v2 and …_v3
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};

template <class Function>
bool bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct Nvml::Calls {
  Status (*init)();
  Status (*shut_down)();
  const char* (*words_of)(Status);
  Status (*count)(unsigned*);
  Status (*handle)(unsigned, Handle*);
  // Any of these may be missing.
  Status (*name)(Handle, char*, unsigned);
  Status (*minor)(Handle, unsigned*);
  Status (*utilisation)(Handle, Utilisation*);
  Status (*memory)(Handle, Memory*);
  Status (*power)(Handle, unsigned*);
  Status (*power_limit)(Handle, unsigned*);
  Status (*clock_reasons)(Handle, unsigned long long*);
  Status (*temperature)(Handle, unsigned, unsigned*);
  Status (*processes)(Handle, unsigned*, Process*);
};

struct Nvml::Device {
  Handle handle = nullptr;
  DeviceReading fixed;  // what does not change
};

Nvml::Nvml() : calls_(std::make_unique<Calls>()) {}

Nvml::~Nvml() {
  if (library_ != nullptr && calls_->shut_down != nullptr) calls_->shut_down();
  // The library stays loaded: drivers' libraries are not made to be unloaded.
}

Result<std::unique_ptr<Nvml>> Nvml::load(const std::string& path) {
  std::unique_ptr<Nvml> nvml(new Nvml());
  if (auto started = nvml->start(path); !started) return std::unexpected(started.error());
  return nvml;
}

Result<void> Nvml::start(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    return fail("{} cannot be loaded: {}", path, why != nullptr ? why : "");
  }
  Calls& c = *calls_;
  bool all = bind(library, "nvmlInit_v2", c.init) && bind(library, "nvmlShutdown", c.shut_down) &&
             bind(library, "nvmlErrorString", c.words_of) &&
             bind(library, "nvmlDeviceGetCount_v2", c.count) &&
             bind(library, "nvmlDeviceGetHandleByIndex_v2", c.handle);
  if (!all) return fail("{} is too old", path);
  bind(library, "nvmlDeviceGetName", c.name);
  bind(library, "nvmlDeviceGetMinorNumber", c.minor);
  bind(library, "nvmlDeviceGetUtilizationRates", c.utilisation);
  bind(library, "nvmlDeviceGetMemoryInfo", c.memory);
  bind(library, "nvmlDeviceGetPowerUsage", c.power);
  bind(library, "nvmlDeviceGetEnforcedPowerLimit", c.power_limit);
  if (!bind(library, "nvmlDeviceGetCurrentClocksEventReasons", c.clock_reasons))
    bind(library, "nvmlDeviceGetCurrentClocksThrottleReasons", c.clock_reasons);
  bind(library, "nvmlDeviceGetTemperature", c.temperature);
  if (!bind(library, "nvmlDeviceGetComputeRunningProcesses_v3", c.processes))
    bind(library, "nvmlDeviceGetComputeRunningProcesses_v2", c.processes);
  if (Status status = c.init(); status != kSuccess)
    return fail("NVIDIA's library does not start: {}", c.words_of(status));
  library_ = library;
  unsigned count = 0;
  if (c.count(&count) != kSuccess) return fail("NVIDIA's library does not count its devices");
  for (unsigned i = 0; i < std::min(count, kMostDevices); ++i) {
    Device device;
    if (c.handle(i, &device.handle) != kSuccess) continue;
    unsigned minor = i, limit = 0;
    if (c.minor != nullptr) c.minor(device.handle, &minor);
    device.fixed.device = fmt::format("nvidia{}", minor);
    char name[128]{};
    if (c.name != nullptr && c.name(device.handle, name, sizeof name - 1) == kSuccess)
      device.fixed.name = name;
    if (c.power_limit != nullptr && c.power_limit(device.handle, &limit) == kSuccess)
      device.fixed.power_limit_mw = limit;
    devices_.push_back(std::move(device));
  }
  return {};
}

std::vector<DeviceReading> Nvml::read() {
  std::vector<DeviceReading> all;
  for (const Device& device : devices_) all.push_back(read_one(device));
  return all;
}

DeviceReading Nvml::read_one(const Device& device) const {
  const Calls& c = *calls_;
  DeviceReading out = device.fixed;
  Utilisation busy{};
  if (c.utilisation != nullptr && c.utilisation(device.handle, &busy) == kSuccess)
    out.busy_milli = int64_t{std::min(busy.gpu, 100u)} * 10;
  Memory memory{};
  if (c.memory != nullptr && c.memory(device.handle, &memory) == kSuccess) {
    out.memory_used = static_cast<int64_t>(memory.used);
    out.memory_total = static_cast<int64_t>(memory.total);
  }
  unsigned value = 0;
  if (c.power != nullptr && c.power(device.handle, &value) == kSuccess) out.power_mw = value;
  unsigned long long reasons = 0;
  if (c.clock_reasons != nullptr && c.clock_reasons(device.handle, &reasons) == kSuccess)
    out.throttled = (reasons & kThrottling) != 0;
  if (c.temperature != nullptr && c.temperature(device.handle, kOfTheChip, &value) == kSuccess)
    out.temperature_c = value;
  if (c.processes == nullptr) return out;
  std::vector<Process> processes(kMostProcesses);
  unsigned count = kMostProcesses;
  Status status = c.processes(device.handle, &count, processes.data());
  if (status != kSuccess && status != kTooSmall) return out;
  out.pids.emplace();
  for (unsigned i = 0; i < std::min(count, kMostProcesses); ++i)
    out.pids->push_back(processes[i].pid);
  return out;
}

}  // namespace assay::capture
