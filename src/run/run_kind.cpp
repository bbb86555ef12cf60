#include "run/run_kind.h"

#include <algorithm>
#include <string_view>

#include "run/reader.h"

namespace assay::run {
namespace {

constexpr std::string_view kImportBackends = "import";  // "import: perf.data", "import: pprof", …

// Shares of samples and of cycles are shares of CPU time.
bool stands_for_time(std::string_view unit) {
  constexpr std::string_view kCpu[] = {"samples", "none", "cycles", "clock"};
  return unit.empty() || std::ranges::any_of(kCpu, [&](std::string_view name) {
           return unit.find(name) != unit.npos;
         });
}

// The unit that an import names, where it stands for no time.
std::string unit_of_import(const Contents& contents) {
  for (const model::Fact& fact : contents.facts) {
    bool is_unit = fact.scope == "import" && fact.key == "unit";
    if (is_unit && !stands_for_time(fact.value)) return fact.value;
  }
  return "";
}

}  // namespace

RunKind run_kind(const Contents& contents) {
  bool imported = contents.info.backend.starts_with(kImportBackends);
  if (contents.is_heap_alone()) return imported ? RunKind::imported_heap : RunKind::heap;
  if (!imported) return RunKind::recorded;
  return unit_of_import(contents).empty() ? RunKind::imported_time : RunKind::imported_counts;
}

std::string counted_unit(const Contents& contents) {
  return is_of_counts(run_kind(contents)) ? unit_of_import(contents) : "";
}

}  // namespace assay::run
