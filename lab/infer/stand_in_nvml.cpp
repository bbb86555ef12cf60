// libnvidia-ml.so.1 of the lab: every process with a stand-in device is one device.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lab/infer/stand_in.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kGone = 15;
constexpr unsigned kIdleWatts = 70, kMostWatts = 600;

struct Device {
  std::string socket;
  lab::stand_in::Reading before;
  int64_t before_ns = 0;
  unsigned percent = 0;
};
std::vector<Device> devices;

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

bool ask(const Device& device, lab::stand_in::Reading& reading) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  size_t length = std::min(device.socket.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, device.socket.data(), length);
  auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  bool read_all = fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address), bytes) == 0 &&
                  read(fd, &reading, sizeof reading) == sizeof reading;
  if (fd >= 0) close(fd);
  return read_all;
}

// How busy it was since the last question.
int refresh(Device& device) {
  lab::stand_in::Reading now;
  if (!ask(device, now)) return kGone;
  int64_t time = now_ns();
  if (device.before_ns != 0 && time - device.before_ns > 1'000'000) {
    double share = static_cast<double>(now.busy_ns - device.before.busy_ns) /
                   static_cast<double>(time - device.before_ns);
    device.percent = static_cast<unsigned>(std::clamp(share * 100 + 0.5, 0.0, 100.0));
  }
  device.before = now;
  device.before_ns = time;
  return kSuccess;
}

Device& of(void* handle) {
  return devices[reinterpret_cast<uintptr_t>(handle) - 1];
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

}  // namespace

EXPORTED int nvmlInit_v2() {
  std::ifstream sockets("/proc/net/unix");
  std::string mark = "@" + std::string(lab::stand_in::kSocketPrefix);
  for (std::string line; std::getline(sockets, line);) {
    size_t at = line.find(mark);
    bool listens = at != std::string::npos && line.find(" 00010000 ") != std::string::npos;
    if (listens) devices.push_back({line.substr(at + 1), {}, 0, 0});
  }
  for (Device& device : devices) refresh(device);
  usleep(50'000);  // so that the first answer is about some time
  return kSuccess;
}
EXPORTED int nvmlShutdown() {
  return kSuccess;
}
EXPORTED const char* nvmlErrorString(int) {
  return "stand-in";
}
EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(devices.size());
  return kSuccess;
}
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = reinterpret_cast<void*>(uintptr_t{index} + 1);
  return kSuccess;
}
EXPORTED int nvmlDeviceGetName(void*, char* name, unsigned length) {
  std::snprintf(name, length, "Stand-in GPU");
  return kSuccess;
}
EXPORTED int nvmlDeviceGetUtilizationRates(void* handle, Utilisation* out) {
  int status = refresh(of(handle));
  *out = {of(handle).percent, 0};
  return status;
}
EXPORTED int nvmlDeviceGetMemoryInfo(void*, Memory* out) {
  *out = {16'000'000'000, 12'000'000'000, 4'000'000'000};
  return kSuccess;
}
EXPORTED int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  *milliwatts = (kIdleWatts + (kMostWatts - kIdleWatts) * of(handle).percent / 100) * 1000;
  return kSuccess;
}
EXPORTED int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = kMostWatts * 1000;
  return kSuccess;
}
EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, Process* out) {
  if (*count < 1) return 7;
  *count = 1;
  out[0] = {static_cast<unsigned>(of(handle).before.pid), 4'000'000'000, 0, 0};
  return kSuccess;
}
