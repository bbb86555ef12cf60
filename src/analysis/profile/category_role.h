// CategoryRole: what verdicts ask of a category. Rule files name it by its id; another name is an
// error at load. Pure; never fails.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "analysis/kind_table.h"

namespace assay::analysis {

enum class CategoryRole : uint8_t {
  none,
  allocator,
  spin,
  network,
  collector,
  application,
  lock,
  accelerator,  // waiting for a device, on the CPU
};
inline constexpr size_t kCategoryRoles = static_cast<size_t>(CategoryRole::accelerator) + 1;

struct CategoryRoleRow {
  CategoryRole kind;
  std::string_view id;  // in rule files
};

inline constexpr std::array<CategoryRoleRow, kCategoryRoles> kCategoryRoleRows{{
    {CategoryRole::none, ""},
    {CategoryRole::allocator, "allocator"},
    {CategoryRole::spin, "spin"},
    {CategoryRole::network, "network"},
    {CategoryRole::collector, "collector"},
    {CategoryRole::application, "application"},
    {CategoryRole::lock, "lock"},
    {CategoryRole::accelerator, "accelerator"},
}};
static_assert(is_complete(kCategoryRoleRows, kCategoryRoles));

}  // namespace assay::analysis
