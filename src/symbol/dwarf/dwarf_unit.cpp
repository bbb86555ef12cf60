#include "symbol/dwarf/dwarf_unit.h"

#include <algorithm>

#include <dwarf.h>

#include "symbol/dwarf/dwarf_file.h"

namespace assay::symbol {
namespace {

constexpr uint64_t kRootAbbrevBytes = 512;
constexpr size_t kMaxTextBytes = 64 << 10;

// Where an attribute that is asked for is kept; null for all others.
AttrValue* slot_of(DieInfo& die, uint16_t attribute) {
  switch (attribute) {
    case DW_AT_name:
      return &die.name;
    case DW_AT_linkage_name:
    case DW_AT_MIPS_linkage_name:
      return &die.linkage_name;
    case DW_AT_low_pc:
      return &die.low_pc;
    case DW_AT_high_pc:
      return &die.high_pc;
    case DW_AT_ranges:
      return &die.ranges;
    case DW_AT_abstract_origin:
      return &die.origin;
    case DW_AT_specification:
      return &die.specification;
    case DW_AT_sibling:
      return &die.sibling;
    case DW_AT_decl_line:
      return &die.decl_line;
    case DW_AT_call_file:
      return &die.call_file;
    case DW_AT_call_line:
      return &die.call_line;
    case DW_AT_stmt_list:
      return &die.stmt_list;
    case DW_AT_comp_dir:
      return &die.comp_dir;
    case DW_AT_dwo_name:
    case DW_AT_GNU_dwo_name:
      return &die.dwo_name;
    case DW_AT_GNU_dwo_id:
      return &die.dwo_id;
    case DW_AT_language:
      return &die.language;
    case DW_AT_addr_base:
    case DW_AT_GNU_addr_base:
      return &die.addr_base;
    case DW_AT_str_offsets_base:
      return &die.str_offsets_base;
    case DW_AT_rnglists_base:
      return &die.rnglists_base;
    case DW_AT_GNU_ranges_base:
      return &die.gnu_ranges_base;
    default:
      return nullptr;
  }
}

}  // namespace

DwarfUnit::DwarfUnit(DwarfFile& file, const DwarfSections& sections, const UnitHeader& header,
                     const DwarfUnit* skeleton)
    : file_(file), sections_(sections), header_(header), skeleton_(skeleton) {
  // The root entry is nearly always short, and there are thousands of units.
  for (uint64_t window : {uint64_t{4096}, header_.end - header_.offset}) {
    uint64_t size = std::min(header_.end - header_.offset, window);
    ByteReader at(sections_.info.view(header_.offset, size), header_.first_die - header_.offset);
    uint64_t code = at.uleb();
    // Its shape is nearly always the table's first: the rest waits until the unit is read.
    AbbrevTable first(sections_.abbrev.view(header_.abbrev_offset, kRootAbbrevBytes), code);
    const AbbrevTable& table = first.find(code) != nullptr ? first : abbrevs();
    const Abbrev* abbrev = table.find(code);
    if (abbrev == nullptr) return;
    root_tag_ = abbrev->tag;
    root_ = {};
    read(at, *abbrev, table, root_);
    if (at.ok()) break;
    root_ = {};
  }
  read_bases();
}

const AbbrevTable& DwarfUnit::abbrevs() const {
  if (!abbrevs_) abbrevs_ = file_.abbrevs(sections_.abbrev, header_.abbrev_offset);
  return *abbrevs_;
}

void DwarfUnit::read_bases() {
  unsigned width = header_.offset_size();
  bool split = skeleton_ != nullptr;
  auto or_else = [](const AttrValue& value, uint64_t fallback) {
    return value ? value.value : fallback;
  };
  // A table's header comes before what its base points to.
  uint64_t str_header = header_.version >= 5 ? (header_.is_64 ? 16 : 8) : 0;
  uint64_t lists_header = header_.is_64 ? 20 : 12;
  str_offsets_base_ = or_else(root_.str_offsets_base, split ? str_header : 0);
  rnglists_base_ = or_else(root_.rnglists_base, split ? lists_header : 0);
  addr_base_ = split ? skeleton_->addr_base_
                     : or_else(root_.addr_base, header_.version >= 5 ? 2 * width : 0);
  gnu_ranges_base_ = split ? skeleton_->gnu_ranges_base_ : or_else(root_.gnu_ranges_base, 0);
  low_pc_ = split ? skeleton_->low_pc_ : address(root_.low_pc).value_or(0);
  comp_dir_ = text(root_.comp_dir);  // copies: the section's memory may be given back
  dwo_name_ = text(root_.dwo_name);
  if (comp_dir_.empty() && split) comp_dir_ = skeleton_->comp_dir_;
}

bool DwarfUnit::is_c_family() const {
  switch (root_.language.value) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x2b:
    case 0x2c:  // C++17, C++20
      return true;
    default:
      return false;
  }
}

ByteReader DwarfUnit::cursor(uint64_t unit_offset) const {
  return ByteReader(sections_.info.view(header_.offset, header_.end - header_.offset), unit_offset);
}

void DwarfUnit::read(ByteReader& cursor, const Abbrev& abbrev, const AbbrevTable& table,
                     DieInfo& out) const {
  const AttrShape* shapes = table.attrs(abbrev);
  for (uint32_t i = 0; i < abbrev.count; ++i) {
    AttrValue value = elf::read_value(cursor, shapes[i], header_);
    if (AttrValue* slot = slot_of(out, shapes[i].name)) *slot = value;
  }
}

AttrValue DwarfUnit::read_sibling(ByteReader& cursor, const Abbrev& abbrev) const {
  AttrValue sibling;
  const AttrShape* shapes = abbrevs().attrs(abbrev);
  for (uint32_t i = 0; i < abbrev.count; ++i) {
    AttrValue value = elf::read_value(cursor, shapes[i], header_);
    if (shapes[i].name == DW_AT_sibling) sibling = value;
  }
  return sibling;
}

std::string_view DwarfUnit::text(const AttrValue& value) const {
  std::string_view out;
  switch (value.form) {
    case DW_FORM_string:
      out = value.inlined;
      break;
    case DW_FORM_strp:
      out = sections_.str.text(value.value);
      break;
    case DW_FORM_line_strp:
      out = sections_.line_str.text(value.value);
      break;
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_strp_sup:
      if (DwarfFile* alt = file_.alt()) out = alt->sections().str.text(value.value);
      break;
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index: {
      unsigned width = header_.offset_size();
      if (value.value > UINT32_MAX) break;
      ByteReader entry(sections_.str_offsets.view(str_offsets_base_ + value.value * width, width));
      uint64_t offset = entry.sized(width);
      if (entry.ok()) out = sections_.str.text(offset);
      break;
    }
    default:
      break;
  }
  return out.size() <= kMaxTextBytes ? out : std::string_view();
}

std::optional<uint64_t> DwarfUnit::indexed_address(uint64_t index) const {
  if (index > UINT32_MAX) return std::nullopt;
  // .debug_addr is in the main file for split units too.
  const SectionBytes& table = skeleton_ != nullptr ? skeleton_->sections_.addr : sections_.addr;
  ByteReader entry(table.view(addr_base_ + index * header_.address_size, header_.address_size));
  uint64_t address = entry.sized(header_.address_size);
  return entry.ok() ? std::optional(address) : std::nullopt;
}

std::optional<uint64_t> DwarfUnit::address(const AttrValue& value) const {
  switch (value.form) {
    case DW_FORM_addr:
      return value.value;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
      return indexed_address(value.value);
    default:
      return std::nullopt;
  }
}

void DwarfUnit::ranges(const DieInfo& die, std::vector<PcRange>& out, size_t limit) const {
  if (die.ranges) {
    limit = file_.take_range_budget(limit);
    if (header_.version < 5) return read_ranges_v4(die.ranges.value + gnu_ranges_base_, out, limit);
    uint64_t offset = die.ranges.value;
    if (die.ranges.form == DW_FORM_rnglistx) {
      unsigned width = header_.offset_size();
      if (offset > UINT32_MAX) return;
      ByteReader entry(sections_.rnglists.view(rnglists_base_ + offset * width, width));
      offset = rnglists_base_ + entry.sized(width);
      if (!entry.ok()) return;
    }
    return read_ranges_v5(offset, out, limit);
  }
  auto low = address(die.low_pc);
  if (!low || !die.high_pc) return;
  uint64_t high = address(die.high_pc).value_or(*low + die.high_pc.value);
  if (high > *low) out.push_back({*low, high});
}

void DwarfUnit::read_ranges_v4(uint64_t offset, std::vector<PcRange>& out, size_t limit) const {
  // A split unit's lists are in the main file.
  const SectionBytes& lists = skeleton_ != nullptr ? skeleton_->sections_.ranges : sections_.ranges;
  unsigned width = header_.address_size;
  uint64_t base = low_pc_;
  uint64_t select = width == 8 ? UINT64_MAX : UINT32_MAX;
  for (size_t i = 0; i < limit; ++i, offset += 2 * width) {
    file_.spend_range();
    ByteReader entry(lists.view(offset, 2 * width));
    uint64_t first = entry.sized(width);
    uint64_t second = entry.sized(width);
    if (!entry.ok() || (first == 0 && second == 0)) return;
    if (first == select) {
      base = second;
    } else if (second > first) {
      out.push_back({base + first, base + second});
    }
  }
}

void DwarfUnit::read_ranges_v5(uint64_t offset, std::vector<PcRange>& out, size_t limit) const {
  constexpr uint64_t kWindowBytes = 1 << 20;  // a list longer than this is cut
  ByteReader cursor(sections_.rnglists.view(offset, kWindowBytes));
  uint64_t base = low_pc_;
  auto add = [&](std::optional<uint64_t> start, std::optional<uint64_t> end) {
    if (start && end && *end > *start) out.push_back({*start, *end});
  };
  for (size_t i = 0; i < limit && cursor.ok(); ++i) {
    file_.spend_range();
    switch (cursor.u8()) {
      case DW_RLE_end_of_list:
        return;
      case DW_RLE_base_addressx:
        base = indexed_address(cursor.uleb()).value_or(0);
        break;
      case DW_RLE_startx_endx: {
        auto start = indexed_address(cursor.uleb());
        add(start, indexed_address(cursor.uleb()));
        break;
      }
      case DW_RLE_startx_length: {
        auto start = indexed_address(cursor.uleb());
        uint64_t length = cursor.uleb();
        if (start) add(start, *start + length);
        break;
      }
      case DW_RLE_offset_pair: {
        uint64_t first = base + cursor.uleb();
        add(first, base + cursor.uleb());
        break;
      }
      case DW_RLE_base_address:
        base = cursor.sized(header_.address_size);
        break;
      case DW_RLE_start_end: {
        uint64_t first = cursor.sized(header_.address_size);
        add(first, cursor.sized(header_.address_size));
        break;
      }
      case DW_RLE_start_length: {
        uint64_t first = cursor.sized(header_.address_size);
        add(first, first + cursor.uleb());
        break;
      }
      default:
        return;
    }
  }
}

}  // namespace assay::symbol
