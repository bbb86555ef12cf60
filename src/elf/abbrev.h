// AbbrevTable: the shapes of the entries (DIEs) of a DWARF unit: tag, attributes and their forms.
//
// In: .debug_abbrev at an offset. Out: the shape of a code. Limits keep hostile tables small; a
// malformed table ends where it breaks. Follows DWARF 5, 7.5.3. Threads: const after reading.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"

namespace assay::elf {

struct AttrShape {
  uint16_t name = 0;
  uint16_t form = 0;
  int64_t implicit = 0;  // value of DW_FORM_implicit_const
};

struct Abbrev {
  uint64_t code = 0;
  uint32_t first = 0;  // of its attributes
  uint32_t count = 0;
  uint16_t tag = 0;
  bool has_children = false;
};

class AbbrevTable {
 public:
  explicit AbbrevTable(std::string_view bytes) : AbbrevTable(bytes, UINT64_MAX) {}
  // Reads no further than the shape of `last_code`: enough for one entry.
  AbbrevTable(std::string_view bytes, uint64_t last_code);

  const Abbrev* find(uint64_t code) const;
  uint64_t bytes_read() const { return bytes_read_; }
  const AttrShape* attrs(const Abbrev& abbrev) const { return attrs_.data() + abbrev.first; }

 private:
  bool read_one(ByteReader& cursor);

  std::vector<Abbrev> abbrevs_;  // sorted by code
  std::vector<AttrShape> attrs_;
  uint64_t bytes_read_ = 0;
};

}  // namespace assay::elf
