// Debug information that was made to do harm: cut off, in circles, with counts beyond reason. What
// can still be told is told; nothing loops, nothing is invented.
#include <random>

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

enum : uint64_t { kRoot = 1, kFunction, kInlined, kBlock, kOrigin, kType, kRanged };

std::string abbrevs() {
  Section out;
  add_abbrev(out, kRoot, DW_TAG_compile_unit, true,
             {{DW_AT_stmt_list, DW_FORM_sec_offset},
              {DW_AT_low_pc, DW_FORM_addr},
              {DW_AT_high_pc, DW_FORM_data8},
              {DW_AT_language, DW_FORM_data1}});
  add_abbrev(out, kFunction, DW_TAG_subprogram, true,
             {{DW_AT_name, DW_FORM_string},
              {DW_AT_low_pc, DW_FORM_addr},
              {DW_AT_high_pc, DW_FORM_data4},
              {DW_AT_decl_line, DW_FORM_data1}});
  add_abbrev(out, kInlined, DW_TAG_inlined_subroutine, false,
             {{DW_AT_abstract_origin, DW_FORM_ref4},
              {DW_AT_low_pc, DW_FORM_addr},
              {DW_AT_high_pc, DW_FORM_data4},
              {DW_AT_call_file, DW_FORM_udata},
              {DW_AT_call_line, DW_FORM_udata}});
  add_abbrev(out, kBlock, DW_TAG_lexical_block, true, {});
  add_abbrev(out, kOrigin, DW_TAG_subprogram, false,
             {{DW_AT_abstract_origin, DW_FORM_ref4},
              {DW_AT_low_pc, DW_FORM_addr},
              {DW_AT_high_pc, DW_FORM_data4}});
  add_abbrev(out, kType, DW_TAG_structure_type, true, {{DW_AT_sibling, DW_FORM_ref4}});
  add_abbrev(out, kRanged, DW_TAG_subprogram, false,
             {{DW_AT_name, DW_FORM_string}, {DW_AT_ranges, DW_FORM_sec_offset}});
  return out.u8(0).bytes();
}

void begin_root(Section& info) {
  info.uleb(kRoot).u32(0).u64(kText).u64(0x100).u8(DW_LANG_C99);
}
void add_function(Section& info, const std::string& name, uint64_t start, uint32_t size,
                  unsigned line = 7) {
  info.uleb(kFunction).text(name).u64(start).u32(size).u8(line);
}

// The header of a line program of DWARF 4 with the file /src/a.c, and room for `program`.
std::string line_table(const std::string& program, unsigned line_range = 14,
                       unsigned opcode_base = 13) {
  Section rest;
  rest.u8(1).u8(1).u8(1).u8(static_cast<uint8_t>(-5)).u8(line_range).u8(opcode_base);
  for (unsigned count : {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}) rest.u8(count);
  rest.text("/src").u8(0);
  rest.text("a.c").uleb(1).uleb(0).uleb(0).u8(0);
  Section out;
  out.u32(2 + 4 + rest.size() + program.size()).u16(4).u32(rest.size());
  return out.raw(rest.bytes()).raw(program).bytes();
}

std::string set_address(uint64_t address) {
  return Section().u8(0).uleb(9).u8(DW_LNE_set_address).u64(address).bytes();
}
std::string end_sequence() {
  return Section().u8(0).uleb(1).u8(DW_LNE_end_sequence).bytes();
}
// Line 10 from kText on, line 12 from kText + 8 on, to kText + 0x20.
std::string good_program() {
  return Section()
      .raw(set_address(kText))
      .u8(DW_LNS_advance_line)
      .u8(9)
      .u8(DW_LNS_copy)
      .u8(DW_LNS_advance_pc)
      .uleb(8)
      .u8(DW_LNS_advance_line)
      .u8(2)
      .u8(DW_LNS_copy)
      .u8(DW_LNS_advance_pc)
      .uleb(0x18)
      .raw(end_sequence())
      .bytes();
}

Sections good_sections() {
  Unit unit;
  begin_root(unit.info);
  add_function(unit.info, "work", kText, 0x20);
  unit.info.u8(0);
  add_function(unit.info, "rest", kText + 0x20, 0x10);
  unit.info.u8(0).u8(0);
  unit.end();
  return {{".debug_info", unit.info.bytes()},
          {".debug_abbrev", abbrevs()},
          {".debug_line", line_table(good_program())}};
}

TEST(HostileDwarf, WhatIsNotHostileIsRead) {
  auto found = find_in(good_sections(), kText + 9);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].function, "work");
  EXPECT_EQ(found[0].file, "/src/a.c");
  EXPECT_EQ(found[0].line, 12u);
  EXPECT_EQ(found[0].function_line, 7u);
  EXPECT_EQ(find_in(good_sections(), kText)[0].line, 10u);
  EXPECT_EQ(function_at(good_sections(), kText + 0x20), "rest");
  EXPECT_EQ(function_at(good_sections(), kText + 0x30), "");
}

TEST(HostileDwarf, SectionsCutAtEveryByteTellTheTruthOrNothing) {
  Sections good = good_sections();
  for (const auto& [name, bytes] : good) {
    int named = 0;
    for (size_t size = 0; size <= bytes.size(); ++size) {
      Sections cut = good;
      cut[name].resize(size);
      auto found = find_in(cut, kText + 9);
      if (found.empty()) continue;
      ASSERT_EQ(found.size(), 1u) << name << " " << size;
      EXPECT_TRUE(found[0].function == "work" || found[0].function.empty()) << found[0].function;
      EXPECT_TRUE(found[0].line == 12 || found[0].line == 0) << found[0].line;
      named += found[0].function == "work";
    }
    EXPECT_GE(named, 1) << name;
    if (name == ".debug_line") {
      EXPECT_GE(named, 10) << "a function needs no line";
    }
  }
}

TEST(HostileDwarf, OriginsInCirclesEnd) {
  Unit unit;
  begin_root(unit.info);
  uint32_t first = unit.info.size();
  unit.info.uleb(kOrigin).u32(0).u64(kText).u32(0x10);
  uint32_t second = unit.info.size();
  unit.info.uleb(kOrigin).u32(first).u64(kText + 0x10).u32(0x10);
  unit.info.patch_u32(first + 1, second);
  uint32_t self = unit.info.size();
  unit.info.uleb(kOrigin).u32(self).u64(kText + 0x20).u32(0x10);
  add_function(unit.info, "after", kText + 0x30, 0x10);
  unit.info.u8(0).u8(0);
  unit.end();
  Sections sections = good_sections();
  sections[".debug_info"] = unit.info.bytes();
  for (uint64_t at : {kText, kText + 0x10, kText + 0x20}) EXPECT_EQ(function_at(sections, at), "");
  EXPECT_EQ(find_in(sections, kText)[0].line, 10u) << "the line is known all the same";
  EXPECT_EQ(function_at(sections, kText + 0x30), "after");
}

TEST(HostileDwarf, ReferencesThatLeaveTheUnitLeadNowhere) {
  for (uint32_t target : {0u, 3u, 0x7fffffffu, 0xffffffffu}) {
    Unit unit;
    begin_root(unit.info);
    unit.info.uleb(kOrigin).u32(target).u64(kText).u32(0x10);
    add_function(unit.info, "after", kText + 0x10, 0x10);
    unit.info.u8(0).u8(0);
    unit.end();
    Sections sections = good_sections();
    sections[".debug_info"] = unit.info.bytes();
    EXPECT_EQ(function_at(sections, kText), "") << target;
    EXPECT_EQ(function_at(sections, kText + 0x10), "after") << target;
  }
}

// A sibling in front of its own entry would be read for ever.
TEST(HostileDwarf, SiblingsThatPointBackAreNotFollowed) {
  for (uint32_t sibling : {0u, 11u, 0xffffffffu}) {
    Unit unit;
    begin_root(unit.info);
    unit.info.uleb(kType).u32(sibling).u8(0);
    add_function(unit.info, "after", kText, 0x10);
    unit.info.u8(0).u8(0);
    unit.end();
    Sections sections = good_sections();
    sections[".debug_info"] = unit.info.bytes();
    std::string name = function_at(sections, kText);
    EXPECT_EQ(name, sibling == 0xffffffffu ? "" : "after") << sibling;
  }
}

TEST(HostileDwarf, EntriesNestedBeyondReasonAreLeftOut) {
  Unit unit;
  begin_root(unit.info);
  add_function(unit.info, "before", kText, 0x10);
  unit.info.u8(0);
  for (int i = 0; i < 200'000; ++i) unit.info.uleb(kBlock);
  add_function(unit.info, "too_deep", kText + 0x10, 0x10);
  unit.end();
  Sections sections = good_sections();
  sections[".debug_info"] = unit.info.bytes();
  EXPECT_EQ(function_at(sections, kText), "before");
  EXPECT_EQ(function_at(sections, kText + 0x10), "");
}

TEST(HostileDwarf, UnitsThatClaimToBeLongerThanTheirSectionAreNone) {
  for (uint32_t length : {0u, 1u, 0x7fffffffu, 0xfffffff0u, 0xffffffffu}) {
    Sections sections = good_sections();
    std::memcpy(sections[".debug_info"].data(), &length, sizeof length);
    EXPECT_EQ(function_at(sections, kText), "") << length;
  }
}

TEST(HostileDwarf, UnknownVersionsAreSkippedAndTheNextUnitIsRead) {
  Sections sections = good_sections();
  Section strange;
  strange.u32(8).u16(9).u32(0).u16(0xffff);
  sections[".debug_info"] = strange.bytes() + sections[".debug_info"];
  EXPECT_EQ(function_at(sections, kText), "work");
}

TEST(HostileDwarf, ShapesBeyondReasonEndTheirTable) {
  // More attributes than any compiler writes.
  Section many;
  many.uleb(kRoot).uleb(DW_TAG_compile_unit).u8(1);
  for (int i = 0; i < 600; ++i) many.uleb(DW_AT_name).uleb(DW_FORM_flag_present);
  many.u8(0).u8(0).u8(0);
  // A form that has no size, and a form that names itself for ever.
  Section unknown, indirect;
  add_abbrev(unknown, kRoot, DW_TAG_compile_unit, true, {{DW_AT_name, 0x7f}});
  add_abbrev(indirect, kRoot, DW_TAG_compile_unit, true, {{DW_AT_name, DW_FORM_indirect}});
  for (const std::string& table : {many.bytes(), unknown.u8(0).bytes(), indirect.u8(0).bytes()}) {
    Sections sections = good_sections();
    sections[".debug_abbrev"] = table;
    if (table == indirect.bytes())
      sections[".debug_info"].replace(11, 40, std::string(40, DW_FORM_indirect));
    EXPECT_EQ(function_at(sections, kText), "");
  }
}

TEST(HostileDwarf, CodesWithGapsAndTwiceTheSameCodeAreFound) {
  Section table;
  add_abbrev(table, 70'000, DW_TAG_base_type, false, {});
  table.raw(abbrevs());
  Sections sections = good_sections();
  sections[".debug_abbrev"] = table.bytes();
  EXPECT_EQ(function_at(sections, kText), "work");
}

TEST(HostileDwarf, RangesV4EndAtTheirSection) {
  Unit unit;
  begin_root(unit.info);
  unit.info.uleb(kRanged).text("ranged").u32(0);
  unit.info.uleb(kRanged).text("nowhere").u32(0x7fffffff);
  unit.info.u8(0);
  unit.end();
  Sections sections = good_sections();
  sections[".debug_info"] = unit.info.bytes();
  // Base 0x1000 of the unit; a range, one that runs backwards, a new base, a range, and no end.
  Section ranges;
  ranges.u64(0x40).u64(0x50).u64(0x60).u64(0x58);
  ranges.u64(UINT64_MAX).u64(kText + 0x800).u64(0).u64(0x10);
  sections[".debug_ranges"] = ranges.bytes();
  EXPECT_EQ(function_at(sections, kText + 0x44), "ranged");
  EXPECT_EQ(function_at(sections, kText + 0x5a), "");
  // Only the unit's own range is looked for, and that ends at 0x100.
  EXPECT_EQ(function_at(sections, kText + 0x50), "");
}

TEST(HostileDwarf, RangesOfMillionsAreCut) {
  Unit unit;
  begin_root(unit.info);
  unit.info.uleb(kRanged).text("ranged").u32(0);
  unit.info.u8(0);
  unit.end();
  Sections sections = good_sections();
  sections[".debug_info"] = unit.info.bytes();
  Section ranges;
  for (int i = 0; i < 100'000; ++i) ranges.u64(0x10).u64(0x20);
  sections[".debug_ranges"] = ranges.u64(0x80).u64(0x90).bytes();
  EXPECT_EQ(function_at(sections, kText + 0x18), "ranged");
  EXPECT_EQ(function_at(sections, kText + 0x88), "") << "behind more ranges than are kept";
}

TEST(HostileDwarf, LineProgramsThatCannotBeRunHaveNoLines) {
  for (const std::string& table :
       {line_table(good_program(), 0), line_table(good_program()).substr(0, 30), std::string(),
        std::string(64, '\xff')}) {
    Sections sections = good_sections();
    sections[".debug_line"] = table;
    auto found = find_in(sections, kText);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].function, "work") << "the function is known all the same";
    EXPECT_EQ(found[0].line, 0u);
  }
}

TEST(HostileDwarf, RowsOfASequenceWithoutItsEndAreDropped) {
  std::string program = good_program();
  Sections sections = good_sections();
  sections[".debug_line"] = line_table(program.substr(0, program.size() - 3));
  EXPECT_EQ(find_in(sections, kText)[0].line, 0u);
  // A whole sequence before it stays.
  sections[".debug_line"] = line_table(program + program.substr(0, program.size() - 3));
  EXPECT_EQ(find_in(sections, kText)[0].line, 10u);
}

TEST(HostileDwarf, NumbersOfALineProgramMayOverflow) {
  Section program;
  program.raw(set_address(kText)).u8(DW_LNS_set_file).uleb(UINT64_MAX).u8(DW_LNS_copy);
  program.u8(DW_LNS_advance_line).u8(0x80).u8(0x80).u8(0x80).u8(0x80).u8(0x78);  // far below 0
  program.u8(DW_LNS_advance_pc).uleb(4).u8(DW_LNS_copy);
  program.u8(DW_LNS_advance_pc).uleb(UINT64_MAX).u8(DW_LNS_copy);
  program.u8(DW_LNS_advance_pc).uleb(0x20).raw(end_sequence());
  Sections sections = good_sections();
  sections[".debug_line"] = line_table(program.bytes());
  auto found = find_in(sections, kText);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].function, "work");
  EXPECT_EQ(found[0].file, "") << "no file has that number";
}

TEST(HostileDwarf, ExtendedOpcodesWithoutSizeEndTheProgram) {
  for (uint64_t size : {uint64_t{0}, uint64_t{1000}, UINT64_MAX}) {
    Section program;
    program.raw(good_program()).u8(0).uleb(size).u8(DW_LNE_set_address);
    Sections sections = good_sections();
    sections[".debug_line"] = line_table(program.bytes());
    EXPECT_EQ(find_in(sections, kText)[0].line, 10u) << "what came before stays: " << size;
  }
}

// DWARF 5 states its counts; a small file must not make many of them.
TEST(HostileDwarf, CountsOfFilesAreNotBelieved) {
  Section rest;
  rest.u8(1).u8(1).u8(1).u8(static_cast<uint8_t>(-5)).u8(14).u8(1);
  rest.u8(1).uleb(DW_LNCT_path).uleb(DW_FORM_string);
  rest.uleb(UINT64_MAX);
  rest.text("/src");
  Section out;
  out.u32(2 + 2 + 4 + rest.size()).u16(5).u8(8).u8(0).u32(rest.size()).raw(rest.bytes());
  Sections sections = good_sections();
  sections[".debug_line"] = out.bytes();
  auto found = find_in(sections, kText);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 0u);
}

TEST(HostileDwarf, InlinedCallsFromFilesThatAreNoneHaveALineOnly) {
  Unit unit;
  begin_root(unit.info);
  uint32_t named = unit.info.size();
  add_function(unit.info, "outer", kText, 0x20);
  unit.info.uleb(kInlined).u32(named).u64(kText + 4).u32(4).uleb(UINT64_MAX).uleb(UINT64_MAX);
  unit.info.u8(0).u8(0);
  unit.end();
  Sections sections = good_sections();
  sections[".debug_info"] = unit.info.bytes();
  auto found = find_in(sections, kText + 5);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].inlined);
  EXPECT_EQ(found[1].function, "outer");
  EXPECT_EQ(found[1].file, "");
  EXPECT_EQ(found[1].line, UINT32_MAX);
  EXPECT_EQ(find_in(sections, kText + 8).size(), 1u) << "behind the inlined copy";
}

TEST(HostileDwarf, RandomBytesInEverySectionAreSurvived) {
  std::mt19937_64 random(23);  // 4,000 tries
  Sections good = good_sections();
  for (int i = 0; i < 4000; ++i) {
    Sections bad = good;
    for (auto& [name, bytes] : bad) {
      for (size_t k = random() % 4; k > 0; --k)
        bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    for (uint64_t at : {kText, kText + 9, kText + 0x20}) {
      auto found = find_in(bad, at);
      EXPECT_LE(found.size(), 256u);
    }
  }
}

}  // namespace
}  // namespace assay::symbol
