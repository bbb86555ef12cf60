#include "analysis/verdict/vital.h"

#include <array>

namespace assay::analysis {
namespace {

#define ASSAY_ROW(name, unit, sentence) {#name, &Vitals::name, VitalUnit::unit, sentence},
constexpr VitalRow kRows[]{ASSAY_VITALS(ASSAY_ROW)};
#undef ASSAY_ROW

}  // namespace

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
