// DwarfUnit: one compilation unit, ready to be read: its header, shapes, root attributes and bases.
//
// In: a DwarfFile's sections. Out: attribute values, texts, addresses and ranges of its entries.
// Every offset is checked; a value that points nowhere is absent. Follows DWARF 4 and 5 and GNU's
// split DWARF 4. Threads: none; guarded by its module's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "elf/abbrev.h"
#include "elf/byte_source.h"
#include "elf/unit_entry.h"

namespace assay::symbol {

using elf::Abbrev;
using elf::AbbrevTable;
using elf::AttrShape;
using elf::AttrValue;
using elf::SectionBytes;
using elf::UnitHeader;

class DwarfFile;

struct DwarfSections {
  SectionBytes info, abbrev, str, line, line_str, ranges, rnglists, addr, str_offsets;
};

struct PcRange {
  uint64_t start = 0;
  uint64_t end = 0;
};

// What a function's, block's or unit's entry says of itself; the attributes anyone here asks for.
struct DieInfo {
  AttrValue name, linkage_name, low_pc, high_pc, ranges, origin, specification, sibling, decl_line,
      call_file, call_line, stmt_list, comp_dir, dwo_name, dwo_id, language, addr_base,
      str_offsets_base, rnglists_base, gnu_ranges_base;
};

class DwarfUnit {
 public:
  // `skeleton` is the unit in the main file that a split unit belongs to; null otherwise.
  DwarfUnit(DwarfFile& file, const DwarfSections& sections, const UnitHeader& header,
            const DwarfUnit* skeleton);

  const UnitHeader& header() const { return header_; }
  const DwarfSections& sections() const { return sections_; }
  DwarfFile& file() const { return file_; }
  const AbbrevTable& abbrevs() const;
  void forget_abbrevs() { abbrevs_.reset(); }
  const DieInfo& root() const { return root_; }
  uint16_t root_tag() const { return root_tag_; }
  std::string_view comp_dir() const { return comp_dir_; }
  const std::string& dwo_name() const { return dwo_name_; }
  uint64_t dwo_id() const { return header_.version >= 5 ? header_.dwo_id : root_.dwo_id.value; }
  bool is_c_family() const;  // C and C++: functions with code never stand inside a type

  // A cursor over the unit whose offsets count from the unit's start.
  ByteReader cursor(uint64_t unit_offset) const;
  // Reads the attributes of the entry that the cursor stands in.
  void read(ByteReader& cursor, const Abbrev& abbrev, DieInfo& out) const {
    read(cursor, abbrev, abbrevs(), out);
  }
  // As read(), keeping only DW_AT_sibling: all that is needed to pass over an entry's children.
  AttrValue read_sibling(ByteReader& cursor, const Abbrev& abbrev) const;

  std::string_view text(const AttrValue& value) const;
  std::optional<uint64_t> address(const AttrValue& value) const;
  // Appends the entry's ranges; at most `limit`.
  void ranges(const DieInfo& die, std::vector<PcRange>& out, size_t limit) const;
  uint64_t low_pc() const { return low_pc_; }

 private:
  void read(ByteReader& cursor, const Abbrev& abbrev, const AbbrevTable& table, DieInfo& out) const;
  void read_bases();
  std::optional<uint64_t> indexed_address(uint64_t index) const;
  void read_ranges_v4(uint64_t offset, std::vector<PcRange>& out, size_t limit) const;
  void read_ranges_v5(uint64_t offset, std::vector<PcRange>& out, size_t limit) const;

  DwarfFile& file_;
  DwarfSections sections_;
  UnitHeader header_;
  mutable std::shared_ptr<const AbbrevTable> abbrevs_;  // read when first needed
  const DwarfUnit* skeleton_;
  DieInfo root_;
  uint16_t root_tag_ = 0;
  uint64_t addr_base_ = 0, str_offsets_base_ = 0, rnglists_base_ = 0, gnu_ranges_base_ = 0;
  uint64_t low_pc_ = 0;
  std::string comp_dir_, dwo_name_;
};

}  // namespace assay::symbol
