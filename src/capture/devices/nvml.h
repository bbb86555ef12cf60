// Nvml: what NVIDIA's management library says of the devices of this machine.
//
// Loaded at run time, by its path; only the process of device_server.h does so. In: the path of
// libnvidia-ml.so.1. Out: DeviceReading of each device. The declarations are our own and few:
// structures and numbers of functions that have been stable since driver 450. Threads: one.
// Failures: an Error when the library cannot be loaded or started; what a device does not say is
// absent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "capture/devices/device_reading.h"

namespace assay::capture {

class Nvml {
 public:
  static Result<std::unique_ptr<Nvml>> load(const std::string& path);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::vector<DeviceReading> read();

 private:
  struct Calls;
  struct Device;
  Nvml();
  Result<void> start(const std::string& path);
  DeviceReading read_one(const Device& device) const;

  void* library_ = nullptr;
  std::unique_ptr<Calls> calls_;
  std::vector<Device> devices_;
};

}  // namespace assay::capture
