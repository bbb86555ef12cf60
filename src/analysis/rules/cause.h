// Cause: what kind of cost a finding is about. Rule files name it by its id; another name is an
// error at load. docs/rules.md lists the ids. Pure; never fails.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "analysis/kind_table.h"

namespace assay::analysis {

enum class Cause : uint8_t { on_cpu, contention, waiting, build, host, memory };

struct CauseRow {
  Cause kind;
  std::string_view id;  // in rule files, reports and JSON
};

inline constexpr std::array<CauseRow, 6> kCauses{{
    {Cause::on_cpu, "on-CPU"},
    {Cause::contention, "contention"},
    {Cause::waiting, "waiting"},
    {Cause::build, "build"},
    {Cause::host, "host"},
    {Cause::memory, "memory"},
}};
static_assert(is_complete(kCauses, static_cast<size_t>(Cause::memory) + 1));

constexpr std::string_view cause_id(Cause cause) {
  return row_of(kCauses, cause).id;
}

}  // namespace assay::analysis
