// What readers of foreign files share: options of the import, and modules by their names.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "formats/import/input.h"
#include "formats/import/run_builder.h"

namespace assay::formats {

// What the values of a file are that does not say so.
enum class Meaning : uint8_t { unsaid, cpu, off };

// What the file does not say, as the user told.
struct ReadOptions {
  Meaning meaning = Meaning::unsaid;  // of folded, speedscope and some pprof files
  int64_t unit_ns = 0;                // of folded values: 0 counts samples
  bool unit_said = false;             // the user said so, even if they are samples
  int64_t period_ns = 0;              // time that one sample stands for; 0: unknown
};

inline constexpr size_t kDeepestStack = 4096;              // frames kept of one stack
inline constexpr int64_t kMostNsOfOne = INT64_MAX / 4096;  // of one sample or wait: 26 days
inline constexpr size_t kLongestStoredName = 20'000;

// Whether a file that begins so is of text.
inline bool is_text(std::string_view head) {
  return head.substr(0, 4096).find('\0') == std::string_view::npos;
}

inline std::string_view stored(std::string_view name) {
  return name.substr(0, kLongestStoredName);
}

template <class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number value{};
  const char* last = text.data() + text.size();
  std::from_chars_result parsed{};
  if constexpr (std::is_floating_point_v<Number>) {
    parsed = std::from_chars(text.data(), last, value);
  } else {
    parsed = std::from_chars(text.data(), last, value, base);
  }
  if (base == 0 || parsed.ec != std::errc() || parsed.ptr != last) return std::nullopt;
  return value;
}

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The module that a tool's name for a file means: kernels and JIT code have many names.
model::ModuleId module_by_name(RunBuilder& builder, std::string_view name,
                               const std::string& build_id, uint64_t an_address);

// The frame of a name that Assay writes for the end of a stack ("[truncated: …]"); none for others.
std::optional<model::FrameId> marker_frame(RunBuilder& builder, std::string_view name);

}  // namespace assay::formats
