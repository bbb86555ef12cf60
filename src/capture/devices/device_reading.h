// DeviceReading: what one device said of itself at one moment, and how it travels from the process
// that asks the vendor's library to Assay.
//
// The sender may be under the control of that library: every number is checked when it is read.
// Pure. Failures: nothing is returned of a message that is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace assay::capture {

struct DeviceReading {
  std::string device;  // below /dev: "nvidia0"
  std::string name;
  // Absent: the device or its library does not say.
  std::optional<int64_t> busy_milli;
  std::optional<int64_t> memory_used, memory_total;  // bytes
  std::optional<int64_t> power_mw, power_limit_mw;
  std::optional<int64_t> throttled;  // 1: its clocks are held down by power or heat
  std::optional<int64_t> temperature_c;
  std::optional<std::vector<uint32_t>> pids;  // that compute on it, as the library counts processes
};

struct DeviceAnswer {
  std::string problem;  // why nothing can be read; empty: all is well
  TimeNs time = 0;      // of the reading
  std::vector<DeviceReading> devices;
};

std::string to_message(const DeviceAnswer& answer);
std::optional<DeviceAnswer> answer_in(const std::string& message);

}  // namespace assay::capture
