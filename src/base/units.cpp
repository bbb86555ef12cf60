#include "base/units.h"

#include <array>
#include <charconv>
#include <cmath>

namespace assay {
namespace {

struct DurationUnit {
  std::string_view name;
  double ns;
};

constexpr std::array kDurationUnits{DurationUnit{"", 1e9},   DurationUnit{"s", 1e9},
                                    DurationUnit{"ms", 1e6}, DurationUnit{"us", 1e3},
                                    DurationUnit{"µs", 1e3}, DurationUnit{"ns", 1},
                                    DurationUnit{"m", 60e9}, DurationUnit{"h", 3600e9}};

constexpr double kLongestDurationNs = 365.0 * 24 * 3600e9;

// Three significant digits: 4.56, 45.6, 456.
std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

}  // namespace

Result<int64_t> parse_duration_ns(std::string_view text) {
  double number = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, text.data() + text.size() - end);
  if (status == std::errc() && std::isfinite(number) && number >= 0) {
    for (const DurationUnit& known : kDurationUnits) {
      if (unit == known.name && number * known.ns <= kLongestDurationNs) {
        return static_cast<int64_t>(std::llround(number * known.ns));
      }
    }
  }
  return fail("'{}' is not a duration: write for example 500ms, 30s, 2m or 1h", text);
}

Result<uint64_t> parse_byte_size(std::string_view text) {
  constexpr size_t kMostDigits = 12;
  size_t digits = 0;
  uint64_t value = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    if (digits == kMostDigits) return fail("{} is too many bytes", text);
    value = value * 10 + static_cast<uint64_t>(text[digits] - '0');
  }
  std::string_view unit = text.substr(digits);
  bool kibi = unit == "k" || unit == "K" || unit == "KiB";
  bool mebi = unit == "m" || unit == "M" || unit == "MiB";
  bool bytes = unit.empty() || unit == "B";
  if (digits == 0 || value == 0 || !(kibi || mebi || bytes))
    return fail("'{}' is no number of bytes, such as 512k or 1M", text);
  return value << (kibi ? 10 : mebi ? 20 : 0);
}

std::string format_duration(int64_t ns) {
  if (ns < 0) return "-" + format_duration(-ns);
  double value = static_cast<double>(ns);
  if (value < 1e3) return fmt::format("{} ns", ns);
  if (value < 999.5e3) return three_digits(value / 1e3) + " µs";
  if (value < 999.5e6) return three_digits(value / 1e6) + " ms";
  if (value < 99.5e9) return three_digits(value / 1e9) + " s";
  int64_t seconds = std::llround(value / 1e9);
  if (seconds < 3600) return fmt::format("{} m {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} m", seconds / 3600, seconds % 3600 / 60);
}

std::string format_bytes(uint64_t bytes) {
  double value = static_cast<double>(bytes);
  if (bytes < 1000) return fmt::format("{} B", bytes);
  if (value < 999.5e3) return three_digits(value / 1e3) + " kB";
  if (value < 999.5e6) return three_digits(value / 1e6) + " MB";
  return three_digits(value / 1e9) + " GB";
}

std::string format_count(uint64_t count) {
  double value = static_cast<double>(count);
  if (count < 1000) return fmt::format("{}", count);
  if (value < 999.5e3) return three_digits(value / 1e3) + "k";
  if (value < 999.5e6) return three_digits(value / 1e6) + "M";
  return three_digits(value / 1e9) + "G";
}

std::string format_percent(double share) {
  double percent = share * 100;
  if (percent >= 99.95) return fmt::format("{:.0f} %", percent);
  return fmt::format("{:.1f} %", percent);
}

}  // namespace assay
