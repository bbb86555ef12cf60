// FunctionNamer: the name of a function's entry, through whatever it was copied or declared from.
//
// A function's entry often has no name of its own: it refers to an abstract copy, which refers to a
// declaration, perhaps in another unit or file. Linker's names win; without one the entry's name is
// completed with the namespaces and types around it ("ns::Type::method").
// Threads: none; belongs to one build of one unit.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "symbol/dwarf/dwarf_unit.h"

namespace assay::symbol {

struct FunctionName {
  std::string text;  // empty: nameless
  bool is_linkage_name = false;
  uint32_t declared_line = 0;
};

class FunctionNamer {
 public:
  // `die_offset` counts from the unit's start, as its cursors do.
  FunctionName name_of(DwarfUnit& unit, uint64_t die_offset, const DieInfo& die);

 private:
  // The scopes of a unit's functions by their entry's offset: "ns::Type::".
  using Scopes = std::unordered_map<uint64_t, std::string>;
  const Scopes& scopes_of(DwarfUnit& unit);

  std::unordered_map<const DwarfUnit*, Scopes> scopes_;
};

}  // namespace assay::symbol
