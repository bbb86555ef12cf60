// ShareOf: what the share of a finding is a share of. Pure; never fails.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "analysis/kind_table.h"

namespace assay::analysis {

enum class ShareOf : uint8_t { nothing, cpu_time, busy_time, live_heap, allocated_bytes };

struct ShareOfRow {
  ShareOf kind;
  std::string_view id;  // in reports and JSON; empty: the finding has no such share
};

inline constexpr std::array<ShareOfRow, 5> kSharesOf{{
    {ShareOf::nothing, ""},
    {ShareOf::cpu_time, "CPU time"},
    {ShareOf::busy_time, "busy time"},
    {ShareOf::live_heap, "live heap"},
    {ShareOf::allocated_bytes, "allocated bytes"},
}};
static_assert(is_complete(kSharesOf, static_cast<size_t>(ShareOf::allocated_bytes) + 1));

constexpr std::string_view share_of_id(ShareOf of) {
  return row_of(kSharesOf, of).id;
}

}  // namespace assay::analysis
