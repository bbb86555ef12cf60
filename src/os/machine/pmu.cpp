#include "os/machine/pmu.h"

#include <charconv>
#include <filesystem>

#include "os/text_fields.h"

namespace assay::os {
namespace {

namespace fs = std::filesystem;

std::optional<uint64_t> parse_number(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) return parse_hex(text.substr(2));
  return parse_u64(text);
}

// Spreads a value over the bits that a field names: "config:0-7,32-35".
std::optional<uint64_t> placed(uint64_t value, std::string_view field) {
  if (!field.starts_with("config:")) return {};
  uint64_t out = 0;
  for (std::string_view range : split(field.substr(7), ',')) {
    size_t dash = range.find('-');
    auto first = parse_u64(range.substr(0, dash));
    auto last = dash == range.npos ? first : parse_u64(range.substr(dash + 1));
    if (!first || !last || *last < *first || *last > 63) return {};
    for (uint64_t bit = *first; bit <= *last; ++bit, value >>= 1) out |= (value & 1) << bit;
  }
  return value == 0 ? std::optional(out) : std::nullopt;
}

std::map<std::string, std::string> read_directory(const std::string& path) {
  std::map<std::string, std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    auto text = read_text_file(entry.path().string(), 4096);
    if (text) out[entry.path().filename().string()] = std::string(trim(*text));
  }
  return out;
}

void read_model(const std::string& root, Pmu& pmu) {
  auto text = read_text_file(root + "/proc/cpuinfo");
  if (!text) return;
  auto value_of = [&](std::string_view key) -> std::string_view {
    for (std::string_view line : split(*text, '\n')) {
      size_t colon = line.find(':');
      if (colon != line.npos && trim(line.substr(0, colon)) == key)
        return trim(line.substr(colon + 1));
    }
    return "";
  };
  pmu.vendor = value_of("vendor_id");
  pmu.family = static_cast<int>(parse_u64(value_of("cpu family")).value_or(0));
  pmu.model = static_cast<int>(parse_u64(value_of("model")).value_or(0));
}

}  // namespace

std::optional<uint64_t> event_config(std::string_view text,
                                     const std::map<std::string, std::string>& fields) {
  uint64_t config = 0;
  for (std::string_view term : split(text, ',')) {
    size_t equals = term.find('=');
    std::string name(trim(term.substr(0, equals)));
    auto value = equals == term.npos ? std::optional<uint64_t>(1)
                                     : parse_number(trim(term.substr(equals + 1)));
    auto field = fields.find(name);
    if (!value || field == fields.end()) return {};
    auto bits = placed(*value, field->second);
    if (!bits) return {};
    config |= *bits;
  }
  return config;
}

Result<Pmu> read_pmu(const std::string& root) {
  for (const char* unit : {"cpu", "cpu_core"}) {
    std::string base = root + "/sys/bus/event_source/devices/" + unit;
    auto type = read_text_file(base + "/type", 64);
    if (!type) continue;
    auto number = parse_u64(trim(*type));
    if (!number || *number > UINT32_MAX) continue;
    Pmu pmu;
    pmu.type = static_cast<uint32_t>(*number);
    read_model(root, pmu);
    std::map<std::string, std::string> fields = read_directory(base + "/format");
    std::map<std::string, std::string> texts = read_directory(base + "/events");
    for (const auto& [name, text] : texts) {
      auto config = event_config(text, fields);
      if (!config) continue;
      PmuEvent event{*config, 1};
      auto scale = texts.find(name + ".scale");
      if (scale != texts.end())
        std::from_chars(scale->second.data(), scale->second.data() + scale->second.size(),
                        event.scale);
      pmu.events[name] = event;
    }
    return pmu;
  }
  return fail("the CPU's counting unit is not offered (a virtual machine without a PMU, usually)");
}

}  // namespace assay::os
