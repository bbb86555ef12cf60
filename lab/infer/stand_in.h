// The stand-in for a GPU: what the server `infer` calls, and what the stand-in of NVML asks.
//
// The library libcuda.so.1 of this folder has the names of NVIDIA's calls that wait, and a device
// that only takes time: work is done one piece after the other, each as long as it was launched
// with. Inside, its functions have no names, like those of the real one. The process answers on the
// abstract socket lab-device-PID with a Reading, by which libnvidia-ml.so.1 of this folder finds
// it; the kernel removes the socket with the process.
#pragma once

#include <cstdint>

namespace lab::stand_in {

inline constexpr const char* kSocketPrefix = "lab-device-";

struct Reading {
  uint64_t busy_ns = 0;  // since the device was opened
  int64_t pid = 0;
};

}  // namespace lab::stand_in

extern "C" {
int cuInit(unsigned flags);
int cuCtxSetFlags(unsigned flags);  // 1: waits spin, 4: waits sleep
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamSynchronize(void* stream);
// In the place of cuLaunchKernel: so many nanoseconds of the device.
int standInLaunch(void* stream, uint64_t device_ns);
}
