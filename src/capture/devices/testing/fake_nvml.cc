// A libnvidia-ml for tests: two devices that say what they always say. FAKE_NVML in the environment
// makes it do what a driver's library may do: "hang", "crash", "refuse".
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {
bool does(const char* what) {
  const char* wanted = std::getenv("FAKE_NVML");
  return wanted != nullptr && std::strcmp(wanted, what) == 0;
}
struct Utilisation {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
struct Process {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
bool is_second(void* handle) {
  return handle == reinterpret_cast<void*>(2);
}
constexpr int kNotSupported = 3;
}  // namespace

EXPORTED int nvmlInit_v2() {
  if (does("hang")) ::pause();
  if (does("crash")) std::abort();
  return does("refuse") ? 9 : 0;
}
EXPORTED int nvmlShutdown() {
  return 0;
}
EXPORTED const char* nvmlErrorString(int) {
  return "Driver Not Loaded";
}
EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = reinterpret_cast<void*>(static_cast<unsigned long>(index) + 1);
  return 0;
}
EXPORTED int nvmlDeviceGetMinorNumber(void* handle, unsigned* minor) {
  *minor = is_second(handle) ? 7 : 3;
  return 0;
}
EXPORTED int nvmlDeviceGetName(void* handle, char* name, unsigned length) {
  // What it may read: this process must be nobody by now where the test is root.
  std::snprintf(name, length, "%s of user %d", is_second(handle) ? "Second" : "First",
                static_cast<int>(::geteuid()));
  return 0;
}
EXPORTED int nvmlDeviceGetUtilizationRates(void* handle, Utilisation* out) {
  *out = {97, 12};
  return is_second(handle) ? kNotSupported : 0;
}
EXPORTED int nvmlDeviceGetMemoryInfo(void*, Memory* out) {
  *out = {1000, 400, 600};
  return 0;
}
EXPORTED int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 693'000;
  return 0;
}
EXPORTED int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return 0;
}
EXPORTED int nvmlDeviceGetCurrentClocksThrottleReasons(void* handle, unsigned long long* reasons) {
  *reasons = is_second(handle) ? 0x1 : 0x4;  // idle; the power cap
  return 0;
}
EXPORTED int nvmlDeviceGetTemperature(void*, unsigned, unsigned* degrees) {
  *degrees = 61;
  return 0;
}
EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, Process* out) {
  *count = is_second(handle) ? 0 : 1;
  out[0] = {7, 500, 0, 0};
  return 0;
}
