#include "analysis/verdict/vital.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"

namespace assay::analysis {
namespace {

#define ASSAY_ROW(name, unit, sentence) {#name, &Vitals::name, VitalUnit::unit, sentence},
constexpr VitalRow kRows[]{ASSAY_VITALS(ASSAY_ROW)};
#undef ASSAY_ROW

std::string with_unit(VitalUnit unit, double value) {
  switch (unit) {
    case VitalUnit::share:
      return format_percent(value);
    case VitalUnit::seconds:
      return fmt::format("{:.1f} s", value);
    case VitalUnit::milliseconds:
      return fmt::format("{:.2f} ms", value);
    case VitalUnit::microseconds:
      return fmt::format("{:.1f} µs", value);
    case VitalUnit::bytes:
      return format_bytes(static_cast<uint64_t>(std::max(0.0, value)));
    case VitalUnit::count:
    case VitalUnit::per_second:
      if (value >= 1000) return format_count(static_cast<uint64_t>(std::llround(value)));
      break;
    case VitalUnit::cpus:
    case VitalUnit::ratio:
    case VitalUnit::flag:
      break;
  }
  return fmt::format("{:.3g}", value);
}

}  // namespace

std::string VitalRow::say(double value) const {
  std::string text(sentence);
  size_t place = text.find("{}");
  if (place != std::string::npos) text.replace(place, 2, with_unit(unit, value));
  return text;
}

std::string_view vital_unit_id(VitalUnit unit) {
  constexpr std::array<std::string_view, 10> kIds{"share", "CPUs", "count", "1/s",   "s",
                                                  "ms",    "µs",   "bytes", "ratio", "0 or 1"};
  return kIds[static_cast<size_t>(unit) % kIds.size()];
}

std::span<const VitalRow> vital_rows() {
  return kRows;
}

const VitalRow* find_vital(std::string_view id) {
  for (const VitalRow& row : kRows) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

}  // namespace assay::analysis
