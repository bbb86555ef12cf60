#include "capture/devices/device_reading.h"

#include <array>

#include "base/wire.h"

namespace assay::capture {
namespace {

constexpr size_t kMostDevices = 64, kMostPids = 4096, kLongestText = 256;

constexpr std::array kNumbers{&DeviceReading::busy_milli,     &DeviceReading::memory_used,
                              &DeviceReading::memory_total,   &DeviceReading::power_mw,
                              &DeviceReading::power_limit_mw, &DeviceReading::throttled,
                              &DeviceReading::temperature_c};

std::optional<int64_t> number(WireReader& in) {
  bool known = in.u8() != 0;
  uint64_t value = in.u64();
  if (!known || value > INT64_MAX) return {};
  return static_cast<int64_t>(value);
}

DeviceReading device_in(WireReader& in) {
  DeviceReading device;
  device.device = in.text().substr(0, kLongestText);
  device.name = in.text().substr(0, kLongestText);
  for (auto field : kNumbers) device.*field = number(in);
  if (in.u8() != 0) {
    device.pids.emplace();
    uint32_t count = in.count(sizeof(uint32_t));
    for (uint32_t i = 0; i < count; ++i) device.pids->push_back(in.u32());
    if (device.pids->size() > kMostPids) device.pids->resize(kMostPids);
  }
  return device;
}

}  // namespace

std::string to_message(const DeviceAnswer& answer) {
  WireWriter out;
  out.text(answer.problem).u64(static_cast<uint64_t>(answer.time));
  out.u32(static_cast<uint32_t>(answer.devices.size()));
  for (const DeviceReading& device : answer.devices) {
    out.text(device.device).text(device.name);
    for (auto field : kNumbers) {
      const std::optional<int64_t>& value = device.*field;
      out.u8(value.has_value()).u64(static_cast<uint64_t>(value.value_or(0)));
    }
    out.u8(device.pids.has_value());
    if (!device.pids) continue;
    out.u32(static_cast<uint32_t>(device.pids->size()));
    for (uint32_t pid : *device.pids) out.u32(pid);
  }
  return out.take();
}

std::optional<DeviceAnswer> answer_in(const std::string& message) {
  WireReader in(message);
  DeviceAnswer answer;
  answer.problem = in.text().substr(0, kLongestText);
  answer.time = static_cast<TimeNs>(in.u64());
  uint32_t count = in.count(2 * sizeof(uint32_t));
  if (count > kMostDevices) return {};
  for (uint32_t i = 0; i < count; ++i) answer.devices.push_back(device_in(in));
  if (!in.done()) return {};
  return answer;
}

}  // namespace assay::capture
