#include "symbol/dwarf/dwarf_unit.h"

#include <algorithm>

#include <dwarf.h>

#include "symbol/dwarf/dwarf_file.h"

namespace assay::symbol {
namespace {

constexpr uint64_t kRootAbbrevBytes = 512;
constexpr size_t kMaxTextBytes = 64 << 10;

// Indirect forms may name another indirect form; compilers emit none at all.
constexpr int kMaxIndirections = 4;

}  // namespace

std::optional<UnitHeader> read_unit_header(const SectionBytes& info, uint64_t offset) {
  ByteCursor cursor(info.view(offset, 64));
  UnitHeader header;
  header.offset = offset;
  uint64_t length = cursor.u32();
  if (length == 0xffffffff) {
    header.is_64 = true;
    length = cursor.u64();
  } else if (length >= 0xfffffff0) {
    return std::nullopt;
  }
  uint64_t body = offset + cursor.offset();
  if (!cursor.ok() || body > info.size || length > info.size - body) return std::nullopt;
  header.end = body + length;
  header.version = cursor.u16();
  if (header.version < 2 || header.version > 5) return header;  // passed over by its length
  if (header.version >= 5) {
    header.type = cursor.u8();
    header.address_size = cursor.u8();
    header.abbrev_offset = cursor.sized(header.offset_size());
    if (header.type == DW_UT_skeleton || header.type == DW_UT_split_compile)
      header.dwo_id = cursor.u64();
    if (header.type == DW_UT_type || header.type == DW_UT_split_type) {
      cursor.skip(8);
      cursor.sized(header.offset_size());
    }
  } else {
    header.abbrev_offset = cursor.sized(header.offset_size());
    header.address_size = cursor.u8();
  }
  header.first_die = offset + cursor.offset();
  if (!cursor.ok() || header.first_die > header.end) return std::nullopt;
  if (header.address_size != 4 && header.address_size != 8) header.version = 0;
  return header;
}

DwarfUnit::DwarfUnit(DwarfFile& file, const DwarfSections& sections, const UnitHeader& header,
                     const DwarfUnit* skeleton)
    : file_(file), sections_(sections), header_(header), skeleton_(skeleton) {
  // The root entry is nearly always short, and there are thousands of units.
  for (uint64_t window : {uint64_t{4096}, header_.end - header_.offset}) {
    uint64_t size = std::min(header_.end - header_.offset, window);
    ByteCursor at(sections_.info.view(header_.offset, size), header_.first_die - header_.offset);
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

ByteCursor DwarfUnit::cursor(uint64_t unit_offset) const {
  return ByteCursor(sections_.info.view(header_.offset, header_.end - header_.offset), unit_offset);
}

AttrValue DwarfUnit::read_value(ByteCursor& cursor, const AttrShape& shape) const {
  AttrValue out{shape.form, 0, {}};
  for (int i = 0; out.form == DW_FORM_indirect && i < kMaxIndirections; ++i) {
    out.form = static_cast<uint16_t>(std::min<uint64_t>(cursor.uleb(), UINT16_MAX));
  }
  switch (out.form) {
    case DW_FORM_addr:
      out.value = cursor.sized(header_.address_size);
      break;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
      out.value = cursor.u8();
      break;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
      out.value = cursor.u16();
      break;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
      out.value = cursor.u24();
      break;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
      out.value = cursor.u32();
      break;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
      out.value = cursor.u64();
      break;
    case DW_FORM_data16:
      cursor.skip(16);
      break;
    case DW_FORM_sdata:
      out.value = static_cast<uint64_t>(cursor.sleb());
      break;
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_rnglistx:
    case DW_FORM_loclistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
      out.value = cursor.uleb();
      break;
    case DW_FORM_flag_present:
      out.value = 1;
      break;
    case DW_FORM_implicit_const:
      out.value = static_cast<uint64_t>(shape.implicit);
      break;
    case DW_FORM_string:
      out.inlined = cursor.text();
      break;
    case DW_FORM_ref_addr:
      out.value = cursor.sized(header_.version <= 2 ? header_.address_size : header_.offset_size());
      break;
    case DW_FORM_sec_offset:
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_GNU_ref_alt:
      out.value = cursor.sized(header_.offset_size());
      break;
    case DW_FORM_block1:
      cursor.skip(cursor.u8());
      break;
    case DW_FORM_block2:
      cursor.skip(cursor.u16());
      break;
    case DW_FORM_block4:
      cursor.skip(cursor.u32());
      break;
    case DW_FORM_block:
    case DW_FORM_exprloc:
      cursor.skip(cursor.uleb());
      break;
    default:
      cursor.fail();
      break;  // an unknown form has an unknown size: nothing after it can be read
  }
  return out;
}

void DwarfUnit::read(ByteCursor& cursor, const Abbrev& abbrev, const AbbrevTable& table,
                     DieInfo& out) const {
  const AttrShape* shapes = table.attrs(abbrev);
  for (uint32_t i = 0; i < abbrev.count; ++i) {
    AttrValue value = read_value(cursor, shapes[i]);
    switch (shapes[i].name) {
      case DW_AT_name:
        out.name = value;
        break;
      case DW_AT_linkage_name:
      case DW_AT_MIPS_linkage_name:
        out.linkage_name = value;
        break;
      case DW_AT_low_pc:
        out.low_pc = value;
        break;
      case DW_AT_high_pc:
        out.high_pc = value;
        break;
      case DW_AT_ranges:
        out.ranges = value;
        break;
      case DW_AT_abstract_origin:
        out.origin = value;
        break;
      case DW_AT_specification:
        out.specification = value;
        break;
      case DW_AT_sibling:
        out.sibling = value;
        break;
      case DW_AT_decl_line:
        out.decl_line = value;
        break;
      case DW_AT_call_file:
        out.call_file = value;
        break;
      case DW_AT_call_line:
        out.call_line = value;
        break;
      case DW_AT_stmt_list:
        out.stmt_list = value;
        break;
      case DW_AT_comp_dir:
        out.comp_dir = value;
        break;
      case DW_AT_dwo_name:
      case DW_AT_GNU_dwo_name:
        out.dwo_name = value;
        break;
      case DW_AT_GNU_dwo_id:
        out.dwo_id = value;
        break;
      case DW_AT_language:
        out.language = value;
        break;
      case DW_AT_addr_base:
      case DW_AT_GNU_addr_base:
        out.addr_base = value;
        break;
      case DW_AT_str_offsets_base:
        out.str_offsets_base = value;
        break;
      case DW_AT_rnglists_base:
        out.rnglists_base = value;
        break;
      case DW_AT_GNU_ranges_base:
        out.gnu_ranges_base = value;
        break;
      default:
        break;
    }
  }
}

AttrValue DwarfUnit::read_sibling(ByteCursor& cursor, const Abbrev& abbrev) const {
  AttrValue sibling;
  const AttrShape* shapes = abbrevs().attrs(abbrev);
  for (uint32_t i = 0; i < abbrev.count; ++i) {
    AttrValue value = read_value(cursor, shapes[i]);
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
      ByteCursor entry(sections_.str_offsets.view(str_offsets_base_ + value.value * width, width));
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
  ByteCursor entry(table.view(addr_base_ + index * header_.address_size, header_.address_size));
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
      ByteCursor entry(sections_.rnglists.view(rnglists_base_ + offset * width, width));
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
    ByteCursor entry(lists.view(offset, 2 * width));
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
  ByteCursor cursor(sections_.rnglists.view(offset, kWindowBytes));
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
