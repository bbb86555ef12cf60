// LineProgram: the line table of one unit: which source line each address comes from.
//
// In: .debug_line at a unit's DW_AT_stmt_list. Out: rows sorted by address, and the unit's files as
// whole paths. Follows DWARF 2 to 5, chapter 6.2. Limits keep hostile programs small.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "symbol/dwarf/dwarf_unit.h"

namespace assay::symbol {

struct LineRow {
  static constexpr uint32_t kEnd = UINT32_MAX;  // as file: the address begins no line

  uint64_t address = 0;
  uint32_t file = 0;
  uint32_t line = 0;
};

struct LineProgram {
  std::vector<LineRow> rows;
  std::vector<std::string> files;  // by the numbers that rows and DW_AT_call_file use

  // `keep` tells whether a sequence of rows that starts at an address is of code that was linked
  // in: dropped functions leave theirs behind at made-up addresses. Rows are read only with
  // `with_rows`.
  static LineProgram read(const DwarfSections& sections, uint64_t offset, std::string_view comp_dir,
                          const std::function<bool(uint64_t)>& keep, bool with_rows);
};

}  // namespace assay::symbol
