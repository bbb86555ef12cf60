// What every reader of DWARF needs: the header of a unit, and the value of one attribute.
//
// In: .debug_info, and shapes from an AbbrevTable. Out: plain values; every offset and size is
// checked. Follows DWARF 2 to 5 (7.5) and GNU's split DWARF 4. Pure functions. Failures: a
// malformed header is nothing; an unknown form makes the reader fail, since its size is unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/byte_reader.h"
#include "elf/abbrev.h"
#include "elf/byte_source.h"

namespace assay::elf {

struct UnitHeader {
  uint64_t offset = 0;  // in .debug_info
  uint64_t end = 0;     // offset of the next unit
  uint64_t first_die = 0;
  uint64_t abbrev_offset = 0;
  uint64_t dwo_id = 0;
  uint16_t version = 0;
  uint8_t type = 0;  // DW_UT_*; 0 before DWARF 5
  uint8_t address_size = 8;
  bool is_64 = false;  // the 64-bit DWARF format

  unsigned offset_size() const { return is_64 ? 8 : 4; }
};

// The header at `offset` of .debug_info; nothing when malformed, which ends the section.
std::optional<UnitHeader> read_unit_header(const SectionBytes& info, uint64_t offset);

struct AttrValue {
  uint16_t form = 0;         // 0: absent
  uint64_t value = 0;        // number, offset, index or address
  std::string_view inlined;  // DW_FORM_string's text

  explicit operator bool() const { return form != 0; }
};

// The value of an attribute of this shape; the reader goes on behind it.
AttrValue read_value(ByteReader& cursor, const AttrShape& shape, const UnitHeader& header);

}  // namespace assay::elf
