// LockShape: how threads wait for one lock. Rule files name it by its id; another name is an error
// at load. Pure; never fails.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "analysis/kind_table.h"

namespace assay::analysis {

enum class LockShape : uint8_t {
  brief,       // waited for, but for too short a time to matter
  contention,  // threads wait while another holds it
  convoy,      // several wait at all times and it is handed from one to the next
};

struct LockShapeRow {
  LockShape kind;
  std::string_view id;  // in rule files and JSON
};

inline constexpr std::array<LockShapeRow, 3> kLockShapes{{
    {LockShape::brief, "brief"},
    {LockShape::contention, "contention"},
    {LockShape::convoy, "convoy"},
}};
static_assert(is_complete(kLockShapes, static_cast<size_t>(LockShape::convoy) + 1));

constexpr std::string_view lock_shape_id(LockShape shape) {
  return row_of(kLockShapes, shape).id;
}

}  // namespace assay::analysis
