// What the descriptor tables of analysis have in common: one row for each enumerator, in its order,
// with the kind itself as `kind` and the name that programs know it by as `id`.
//
// A table is declared with static_assert(is_complete(kRows, kCount)): a new enumerator without a
// row does not compile. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace assay::analysis {

template <class Row, size_t N>
constexpr bool is_complete(const std::array<Row, N>& rows, size_t count) {
  if (N != count) return false;
  for (size_t i = 0; i < N; ++i) {
    if (static_cast<size_t>(rows[i].kind) != i) return false;
  }
  return true;
}

template <class Row, size_t N>
constexpr const Row& row_of(const std::array<Row, N>& rows, decltype(Row::kind) kind) {
  return rows[static_cast<size_t>(kind) % N];
}

// The kind that programs know by this name; absent: there is none.
template <class Row, size_t N>
constexpr std::optional<decltype(Row::kind)> kind_with_id(const std::array<Row, N>& rows,
                                                          std::string_view id) {
  for (const Row& row : rows) {
    if (row.id == id) return row.kind;
  }
  return {};
}

}  // namespace assay::analysis
