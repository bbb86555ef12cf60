// Accelerator: a device beside the CPUs that computes for programs (GPU, NPU), and what a run knows
// of it.
//
// The capture writes it as facts of the scope "accelerator DEVICE" and as series of the host with
// the device as label; the analysis reads both back. Keys and names stand here, once. Names of
// devices come from a driver and may hold anything; who shows them escapes them. Pure; a fact that
// does not read like one of ours is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/run_info.h"

namespace assay::model {

struct Accelerator {
  std::string device;  // below /dev: "nvidia0", "dri/renderD128"
  std::string name;    // as its driver calls it: "NVIDIA H200"; empty: not known
  std::optional<uint64_t> memory_bytes;
  std::optional<double> power_limit_w;
  bool used_by_target = false;
};

// The series of a device: gauges of scope host, label: the device.
inline constexpr const char* kAcceleratorBusy = "accelerator_busy";                // milli
inline constexpr const char* kAcceleratorMemory = "accelerator_memory";            // bytes in use
inline constexpr const char* kAcceleratorPower = "accelerator_power";              // milli: mW
inline constexpr const char* kAcceleratorThrottled = "accelerator_throttled";      // 0 or 1
inline constexpr const char* kAcceleratorTemperature = "accelerator_temperature";  // °C

// "nvidia0" of "/dev/nvidia0"; nothing where the path is no accelerator's.
std::optional<std::string_view> accelerator_device(std::string_view path);

std::vector<Fact> to_facts(const Accelerator& accelerator);
std::vector<Accelerator> accelerators_in(const std::vector<Fact>& facts);  // in order of device

}  // namespace assay::model
