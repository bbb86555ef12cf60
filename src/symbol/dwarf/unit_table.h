// UnitTable: what one compilation unit says of its code, flat: lines, functions and what is inlined
// in them.
//
// In: a unit, read once by build_unit_table (or the cache on disk). Out: for an address the
// functions at it, innermost first, with file and line. All references are indices, so that a table
// is written to and read from disk as it is; check() refuses tables whose indices lead outside.
// Threads: none; find() remembers the names it has demangled. Guarded by the module's lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/location.h"
#include "symbol/dwarf/dwarf_unit.h"
#include "symbol/dwarf/line_program.h"

namespace assay::symbol {

struct TextRef {  // into UnitTable::pool
  uint32_t at = 0;
  uint32_t size = 0;
};

struct NameRef {
  TextRef text;
  uint32_t is_linkage_name = 0;  // to be demangled; else it is for people already
};

// One function with code, or one inlined copy of a function inside another. Nodes are in the order
// of the debug information: a node is followed by its descendants.
struct FunctionNode {
  uint32_t name = 0;  // of names
  uint32_t declared_line = 0;
  uint32_t call_file = 0;  // of files: where the inlined copy was called
  uint32_t call_line = 0;
  uint32_t first_range = 0;  // of ranges
  uint32_t range_count = 0;
  uint32_t subtree_end = 0;  // index after its last descendant
  uint32_t inlined = 0;
};

struct FunctionSpan {  // of a function with code; sorted by start
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t node = 0;
  uint32_t reserved = 0;
};

struct UnitTable {
  std::vector<LineRow> rows;  // LineRow::file is of files here
  std::vector<FunctionSpan> spans;
  std::vector<FunctionNode> nodes;
  std::vector<PcRange> ranges;
  std::vector<NameRef> names;
  std::vector<TextRef> files;
  std::string pool;
  bool complete = true;  // false: parts were missing (a .dwo file); such a table is not cached

  std::string_view text(const TextRef& ref) const {
    return std::string_view(pool).substr(ref.at, ref.size);
  }
  bool check() const;

  // Appends the locations at `address`, innermost first. A location without function says that only
  // the line is known. Nothing is appended when the unit knows nothing.
  void find(uint64_t address, bool inlines, std::vector<model::Location>& out);

 private:
  const LineRow* find_row(uint64_t address) const;
  const FunctionSpan* find_span(uint64_t address) const;
  bool covers(const FunctionNode& node, uint64_t address) const;
  void set_name(const FunctionNode& node, model::Location& out);

  std::unordered_map<uint32_t, std::string> demangled_;  // by name
};

// Reads a unit. `unit` has the functions: the split unit where there is one; `lines` has the line
// table: the same unit, or the skeleton. `keep` as in LineProgram.
UnitTable build_unit_table(DwarfUnit& unit, DwarfUnit& lines,
                           const std::function<bool(uint64_t)>& keep);

}  // namespace assay::symbol
