#include "model/device/accelerator.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

namespace assay::model {
namespace {

constexpr std::string_view kScope = "accelerator ";
constexpr size_t kMostRead = 64;
constexpr double kMostWatts = 1e6;  // of one device: more is nonsense

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

void take(Accelerator& accelerator, const Fact& fact) {
  if (fact.key == "name") accelerator.name = fact.value;
  if (fact.key == "memory_bytes") accelerator.memory_bytes = number<uint64_t>(fact.value);
  if (fact.key == "used_by_target") accelerator.used_by_target = fact.value == "yes";
  if (fact.key == "power_limit_w") {
    auto watts = number<double>(fact.value);
    if (watts && *watts > 0 && *watts < kMostWatts) accelerator.power_limit_w = watts;
  }
}

}  // namespace

std::optional<std::string_view> accelerator_device(std::string_view path) {
  constexpr std::string_view kDev = "/dev/";
  if (!path.starts_with(kDev)) return {};
  std::string_view device = path.substr(kDev.size());
  constexpr std::string_view kNvidia = "nvidia";  // nvidiactl and nvidia-uvm are no devices
  if (device.starts_with(kNvidia) && is_number(device.substr(kNvidia.size()))) return device;
  if (device == "kfd") return device;
  for (std::string_view folder : {"dri/", "tenstorrent/", "accel/"})
    if (device.starts_with(folder) && device.size() > folder.size()) return device;
  return {};
}

// A fact replaces the one of the same scope and key, so every key that is known is written.
std::vector<Fact> to_facts(const Accelerator& accelerator) {
  std::string scope = fmt::format("{}{}", kScope, accelerator.device);
  std::vector<Fact> facts;
  facts.push_back({scope, "used_by_target", accelerator.used_by_target ? "yes" : "no"});
  if (!accelerator.name.empty()) facts.push_back({scope, "name", accelerator.name});
  if (accelerator.memory_bytes)
    facts.push_back({scope, "memory_bytes", std::to_string(*accelerator.memory_bytes)});
  if (accelerator.power_limit_w)
    facts.push_back({scope, "power_limit_w", fmt::format("{:.1f}", *accelerator.power_limit_w)});
  return facts;
}

std::vector<Accelerator> accelerators_in(const std::vector<Fact>& facts) {
  std::map<std::string, Accelerator> found;
  for (const Fact& fact : facts) {
    if (!fact.scope.starts_with(kScope)) continue;
    std::string device = fact.scope.substr(kScope.size());
    if (found.size() >= kMostRead && !found.contains(device)) continue;
    take(found[device], fact);
  }
  std::vector<Accelerator> all;
  for (auto& [device, accelerator] : found) {
    accelerator.device = device;
    all.push_back(std::move(accelerator));
  }
  return all;
}

}  // namespace assay::model
