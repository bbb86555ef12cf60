// The names of functions whose entries have none of their own, and of DWARF's older and newer ways
// to write ranges and texts, in units that are written here byte by byte.
#include <gtest/gtest.h>

#include "symbol/dwarf/testing/dwarf_maker.h"

namespace assay::symbol {
namespace {

using testing::add_abbrev;
using testing::find_in;
using testing::function_at;
using testing::kText;
using testing::Section;
using testing::Sections;
using testing::Unit;

enum : uint64_t { kRoot = 1, kNamespace, kStruct, kDeclared, kDefined, kNameless };

std::string scoped_abbrevs() {
  Section out;
  add_abbrev(out, kRoot, DW_TAG_compile_unit, true,
             {{DW_AT_low_pc, DW_FORM_addr},
              {DW_AT_high_pc, DW_FORM_data8},
              {DW_AT_language, DW_FORM_data1}});
  add_abbrev(out, kNamespace, DW_TAG_namespace, true, {{DW_AT_name, DW_FORM_string}});
  add_abbrev(out, kStruct, DW_TAG_structure_type, true, {{DW_AT_name, DW_FORM_string}});
  add_abbrev(out, kDeclared, DW_TAG_subprogram, false,
             {{DW_AT_name, DW_FORM_string}, {DW_AT_decl_line, DW_FORM_data1}});
  add_abbrev(out, kDefined, DW_TAG_subprogram, false,
             {{DW_AT_specification, DW_FORM_ref4},
              {DW_AT_low_pc, DW_FORM_addr},
              {DW_AT_high_pc, DW_FORM_data4}});
  add_abbrev(out, kNameless, DW_TAG_namespace, true, {});
  return out.u8(0).bytes();
}

Sections scoped(unsigned language) {
  Unit unit;
  unit.info.uleb(kRoot).u64(kText).u64(0x100).u8(language);
  unit.info.uleb(kNamespace).text("ns").uleb(kStruct).text("Type");
  uint32_t method = unit.info.size();
  unit.info.uleb(kDeclared).text("method").u8(33);
  unit.info.u8(0).uleb(kNameless);
  uint32_t hidden = unit.info.size();
  unit.info.uleb(kDeclared).text("hidden").u8(44);
  unit.info.u8(0).u8(0);
  unit.info.uleb(kDefined).u32(method).u64(kText).u32(0x10);
  unit.info.uleb(kDefined).u32(hidden).u64(kText + 0x10).u32(0x10);
  unit.info.u8(0);
  unit.end();
  return {{".debug_info", unit.info.bytes()}, {".debug_abbrev", scoped_abbrevs()}};
}

TEST(DwarfNames, DeclarationsGiveNameScopeAndLine) {
  auto found = find_in(scoped(DW_LANG_C_plus_plus_14), kText);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].function, "ns::Type::method");
  EXPECT_EQ(found[0].function_line, 33u);
  EXPECT_EQ(function_at(scoped(DW_LANG_C_plus_plus_14), kText + 0x10),
            "ns::(anonymous namespace)::hidden");
}

TEST(DwarfNames, ScopesAreWrittenAsTheLanguageDoes) {
  EXPECT_EQ(function_at(scoped(DW_LANG_D), kText), "ns.Type.method");
  EXPECT_EQ(function_at(scoped(DW_LANG_C99), kText), "method") << "C has no scopes";
}

// One unit of DWARF 5 with every way to name a text and an address by its number.
class IndexedUnit {
 public:
  explicit IndexedUnit(unsigned name_form, unsigned address_form)
      : name_form_(name_form), address_form_(address_form) {}

  Sections sections() const {
    Section abbrev;
    add_abbrev(abbrev, 1, DW_TAG_compile_unit, true,
               {{DW_AT_low_pc, DW_FORM_addr},
                {DW_AT_high_pc, DW_FORM_data8},
                {DW_AT_str_offsets_base, DW_FORM_sec_offset},
                {DW_AT_addr_base, DW_FORM_sec_offset},
                {DW_AT_rnglists_base, DW_FORM_sec_offset},
                {DW_AT_language, DW_FORM_data2}});
    add_abbrev(
        abbrev, 2, DW_TAG_subprogram, false,
        {{DW_AT_name, name_form_}, {DW_AT_low_pc, address_form_}, {DW_AT_high_pc, DW_FORM_udata}});
    add_abbrev(abbrev, 3, DW_TAG_subprogram, false,
               {{DW_AT_name, DW_FORM_string}, {DW_AT_ranges, DW_FORM_rnglistx}});
    Section info;
    info.u32(0).u16(5).u8(DW_UT_compile).u8(8).u32(0);
    info.uleb(1).u64(kText).u64(0x200).u32(8).u32(8).u32(12).u16(DW_LANG_C11);
    info.uleb(2);
    put(info, name_form_, 1);
    put(info, address_form_, 1);
    info.uleb(0x10);
    info.uleb(3).text("listed").uleb(0).u8(0);
    info.patch_u32(0, info.size() - 4);
    Section str_offsets, addr;
    str_offsets.u32(4 + 3 * 4).u16(5).u16(0).u32(0).u32(6).u32(0x7fffffff);
    addr.u32(4 + 3 * 8).u16(5).u8(8).u8(0).u64(0).u64(kText).u64(kText + 0x100);
    return {{".debug_info", info.bytes()},
            {".debug_abbrev", abbrev.u8(0).bytes()},
            {".debug_str", std::string("first\0second\0", 13)},
            {".debug_str_offsets", str_offsets.bytes()},
            {".debug_addr", addr.bytes()},
            {".debug_rnglists", lists()}};
  }

 private:
  static void put(Section& to, unsigned form, uint64_t index) {
    switch (form) {
      case DW_FORM_strx1:
      case DW_FORM_addrx1:
        to.u8(static_cast<unsigned>(index));
        break;
      case DW_FORM_strx2:
      case DW_FORM_addrx2:
        to.u16(static_cast<unsigned>(index));
        break;
      case DW_FORM_strx3:
      case DW_FORM_addrx3:
        to.u8(static_cast<unsigned>(index)).u16(0);
        break;
      case DW_FORM_strx4:
      case DW_FORM_addrx4:
        to.u32(index);
        break;
      default:
        to.uleb(index);
    }
  }
  // Every kind of range once: each of 4 bytes, 0x10 apart, from kText + 0x20 on.
  static std::string lists() {
    Section body;
    body.u8(DW_RLE_start_end).u64(kText + 0x20).u64(kText + 0x24);
    body.u8(DW_RLE_start_length).u64(kText + 0x30).uleb(4);
    body.u8(DW_RLE_base_address).u64(kText);
    body.u8(DW_RLE_offset_pair).uleb(0x40).uleb(0x44);
    body.u8(DW_RLE_base_addressx).uleb(1);
    body.u8(DW_RLE_offset_pair).uleb(0x50).uleb(0x54);
    body.u8(DW_RLE_startx_length).uleb(2).uleb(4);
    body.u8(DW_RLE_startx_endx).uleb(1).uleb(99);  // no such address
    body.u8(DW_RLE_startx_length).uleb(UINT64_MAX).uleb(4);
    body.u8(DW_RLE_start_end).u64(kText + 0x70).u64(kText + 0x60);  // backwards
    body.u8(DW_RLE_end_of_list);
    body.u8(DW_RLE_start_end).u64(kText + 0x80).u64(kText + 0x84);  // behind the end
    Section out;
    out.u32(4 + 4 + 4 + body.size()).u16(5).u8(8).u8(0).u32(1).u32(4);
    return out.raw(body.bytes()).bytes();
  }

  unsigned name_form_, address_form_;
};

TEST(DwarfNames, TextsAndAddressesByNumberInEveryWidth) {
  const std::pair<unsigned, unsigned> kForms[] = {{DW_FORM_strx, DW_FORM_addrx},
                                                  {DW_FORM_strx1, DW_FORM_addrx1},
                                                  {DW_FORM_strx2, DW_FORM_addrx2},
                                                  {DW_FORM_strx3, DW_FORM_addrx3},
                                                  {DW_FORM_strx4, DW_FORM_addrx4}};
  for (auto [name, address] : kForms) {
    Sections sections = IndexedUnit(name, address).sections();
    EXPECT_EQ(function_at(sections, kText), "second") << name;
    EXPECT_EQ(function_at(sections, kText + 0xf), "second") << name;
    EXPECT_EQ(function_at(sections, kText + 0x10), "") << name;
  }
}

TEST(DwarfNames, RangesOfDwarfFiveOfEveryKind) {
  Sections sections = IndexedUnit(DW_FORM_strx1, DW_FORM_addrx1).sections();
  for (uint64_t at : {0x20, 0x30, 0x40, 0x50, 0x100}) {
    EXPECT_EQ(function_at(sections, kText + at), "listed") << at;
    EXPECT_EQ(function_at(sections, kText + at + 3), "listed") << at;
    EXPECT_EQ(function_at(sections, kText + at + 4), "") << at;
  }
  EXPECT_EQ(function_at(sections, kText + 0x64), "") << "a range that runs backwards";
  EXPECT_EQ(function_at(sections, kText + 0x80), "") << "behind the list's end";
}

TEST(DwarfNames, NumbersThatNameNothingAreNoNames) {
  Sections sections = IndexedUnit(DW_FORM_strx1, DW_FORM_addrx1).sections();
  // The second text begins beyond its section, then the table itself ends early.
  std::string& offsets = sections[".debug_str_offsets"];
  std::memset(offsets.data() + 12, 0x7f, 4);
  EXPECT_EQ(function_at(sections, kText), "");
  offsets.resize(12);
  EXPECT_EQ(function_at(sections, kText), "");
  sections[".debug_addr"].resize(8);
  EXPECT_EQ(function_at(sections, kText + 0x100), "") << "no address, no range";
  EXPECT_EQ(function_at(sections, kText + 0x20), "listed") << "what needs none stays";
}

}  // namespace
}  // namespace assay::symbol
