#include "elf/unit_entry.h"

#include <algorithm>

#include <dwarf.h>

namespace assay::elf {
namespace {

// Indirect forms may name another indirect form; compilers emit none at all.
constexpr int kMaxIndirections = 4;

}  // namespace

std::optional<UnitHeader> read_unit_header(const SectionBytes& info, uint64_t offset) {
  ByteReader cursor(info.view(offset, 64));
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

AttrValue read_value(ByteReader& cursor, const AttrShape& shape, const UnitHeader& header) {
  AttrValue out{shape.form, 0, {}};
  for (int i = 0; out.form == DW_FORM_indirect && i < kMaxIndirections; ++i) {
    out.form = static_cast<uint16_t>(std::min<uint64_t>(cursor.uleb(), UINT16_MAX));
  }
  switch (out.form) {
    case DW_FORM_addr:
      out.value = cursor.sized(header.address_size);
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
      out.value = cursor.sized(header.version <= 2 ? header.address_size : header.offset_size());
      break;
    case DW_FORM_sec_offset:
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_GNU_ref_alt:
      out.value = cursor.sized(header.offset_size());
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

}  // namespace assay::elf
