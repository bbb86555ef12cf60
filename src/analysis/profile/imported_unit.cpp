#include "analysis/profile/imported_unit.h"

#include <algorithm>

namespace assay::analysis {
namespace {

bool stands_for_time(std::string_view unit) {
  constexpr std::string_view kCpu[] = {"samples", "none", "cycles", "clock"};
  return unit.empty() || std::ranges::any_of(kCpu, [&](std::string_view name) {
           return unit.find(name) != unit.npos;
         });
}

}  // namespace

std::string imported_unit(const model::RunInfo& info, const std::vector<model::Fact>& facts) {
  if (!info.backend.starts_with("import")) return "";
  for (const model::Fact& fact : facts) {
    bool is_unit = fact.scope == "import" && fact.key == "unit";
    if (is_unit && !stands_for_time(fact.value)) return fact.value;
  }
  return "";
}

}  // namespace assay::analysis
