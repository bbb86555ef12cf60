#include "unwind/table/table.h"

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_door.h"
#include "base/testing/temporary_directory.h"
#include "base/unique_fd.h"
#include "os/process/module_file.h"
#include "unwind/arch_x86_64.h"
#include "unwind/table/cfi.h"
#include "unwind/table/table_builder.h"
#include "unwind/table/table_store.h"
#include "unwind/testing/elf_maker.h"

namespace assay::unwind {
namespace {

using testing::Bytes;
using testing::CfiMaker;
using testing::make_bytes;
using testing::make_elf;
using testing::open_elf;

constexpr uint64_t kText = 0x401000;

std::shared_ptr<const Table> table_of(const Bytes& elf) {
  auto image = open_elf(elf);
  EXPECT_TRUE(image) << image.error().what;
  auto bytes = build_table(**image, "abcd");
  EXPECT_TRUE(bytes) << bytes.error().what;
  auto table = Table::from_bytes(std::move(*bytes));
  EXPECT_TRUE(table) << table.error().what;
  return *table;
}

std::shared_ptr<const Table> table_with(const CfiMaker& cfi, Bytes text = Bytes(0x400)) {
  return table_of(make_elf(kText, text, {{".eh_frame", 0x500000, cfi.section()}}));
}

Row row_at(const Table& table, uint64_t vaddr) {
  uint32_t number = table.view().find(vaddr - kText);
  return number < table.view().header->row_count ? table.view().rows[number] : Row{kNoCfi};
}

void expect_row(const Table& table, uint64_t vaddr, RowType type, uint32_t slot, uint32_t cfa) {
  Row row = row_at(table, vaddr);
  EXPECT_EQ(row.rule_bits(), Row::pack(type, slot, cfa)) << std::hex << vaddr << " " << row.bits;
}

TEST(Table, RowsFollowTheProgram) {
  CfiMaker cfi;
  cfi.fde(kText + 0x10, 0x30,
          make_bytes({DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2,
                      DW_CFA_advance_loc | 3, DW_CFA_def_cfa_register, 6,  //
                      DW_CFA_advance_loc1, 0x20, DW_CFA_def_cfa, 7, 8}));
  auto table = table_with(cfi);
  expect_row(*table, kText, RowType::none, 0, 0);
  expect_row(*table, kText + 0xf, RowType::none, 0, 0);
  expect_row(*table, kText + 0x10, RowType::sp, 0, 1);
  expect_row(*table, kText + 0x11, RowType::sp, 1, 2);
  expect_row(*table, kText + 0x13, RowType::sp, 1, 2);
  expect_row(*table, kText + 0x14, RowType::fp, 1, 2);
  expect_row(*table, kText + 0x33, RowType::fp, 1, 2);
  // After the pop the slot is below sp: the register has its value back.
  expect_row(*table, kText + 0x34, RowType::sp, 0, 1);
  expect_row(*table, kText + 0x3f, RowType::sp, 0, 1);
  expect_row(*table, kText + 0x40, RowType::none, 0, 0);
  expect_row(*table, kText + 0x3ff, RowType::none, 0, 0);
}

TEST(Table, RowsCarryOverPagesWithoutRows) {
  CfiMaker cfi;
  cfi.fde(kText + 0x10, 0x350,
          make_bytes({DW_CFA_advance_loc2, 0x20, 0x03, DW_CFA_def_cfa_offset, 64}));
  auto table = table_with(cfi);
  for (uint64_t at = 0x10; at < 0x330; at += 0x10)
    expect_row(*table, kText + at, RowType::sp, 0, 1);
  expect_row(*table, kText + 0x330, RowType::sp, 0, 8);
  expect_row(*table, kText + 0x360, RowType::none, 0, 0);
}

TEST(Table, ARedZoneSlotIsNotTakenForAPoppedOne) {
  CfiMaker cfi;
  cfi.fde(kText, 0x20, make_bytes({DW_CFA_advance_loc | 5, DW_CFA_offset | 6, 2}));
  expect_row(*table_with(cfi), kText + 8, RowType::sp, 1, 1);
}

TEST(Table, RememberedStatesComeBack) {
  CfiMaker cfi;
  cfi.fde(kText, 0x30,
          make_bytes({DW_CFA_def_cfa_offset, 32, DW_CFA_advance_loc | 4, DW_CFA_remember_state,
                      DW_CFA_def_cfa_offset, 8, DW_CFA_advance_loc | 4, DW_CFA_restore_state}));
  auto table = table_with(cfi);
  expect_row(*table, kText, RowType::sp, 0, 4);
  expect_row(*table, kText + 4, RowType::sp, 0, 1);
  expect_row(*table, kText + 8, RowType::sp, 0, 4);
}

TEST(Table, KnownPatternsBecomeRows) {
  CfiMaker cfi;
  cfi.fde(kText, 0x10,
          make_bytes({DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15,
                      DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus}));
  cfi.fde(kText + 0x10, 0x10, make_bytes({DW_CFA_undefined, 16}));
  cfi.fde(kText + 0x20, 0x10,
          make_bytes({DW_CFA_expression, 6, 2, DW_OP_breg6, 0, DW_CFA_def_cfa_expression, 3,
                      DW_OP_breg6, 0x78, DW_OP_deref}));
  auto table = table_with(cfi);
  expect_row(*table, kText, RowType::plt, 0, 11);
  expect_row(*table, kText + 0x10, RowType::end, 0, 0);
  expect_row(*table, kText + 0x20, RowType::fp_memory, 1, 0xffff);
}

TEST(Table, WhatDoesNotFitBecomesAFullRuleOrIsMarked) {
  CfiMaker cfi;
  cfi.fde(kText, 0x10, make_bytes({DW_CFA_def_cfa, 3, 24}));                // CFA = rbx + 24
  cfi.fde(kText + 0x10, 0x10, make_bytes({0x3f}));                          // no such instruction
  cfi.fde(kText + 0x20, 0x10, make_bytes({DW_CFA_restore_state}));          // nothing to restore
  cfi.fde(kText + 0x30, 0x10, make_bytes({DW_CFA_def_cfa_expression, 9}));  // beyond its entry
  auto table = table_with(cfi);
  EXPECT_EQ(row_at(*table, kText).type(), RowType::full);
  for (uint64_t at : {0x10, 0x20, 0x30}) expect_row(*table, kText + at, RowType::none, 0, 1);
}

TEST(Table, TheKernelsSignalFrameIsKnownByItsRulesOrItsCode) {
  Bytes program = make_bytes({DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xa0, 0x01, DW_OP_deref});
  auto at = [&](int reg, int offset) {
    auto more =
        make_bytes({DW_CFA_expression, reg, 3, DW_OP_breg7, (offset & 0x7f) | 0x80, offset >> 7});
    program.insert(program.end(), more.begin(), more.end());
  };
  at(6, 120), at(16, 168), at(3, 128);
  CfiMaker cfi(true);
  cfi.fde(kText, 0x10, program);
  Bytes text(0x400);
  const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  std::memcpy(text.data() + 0x100, code, sizeof code);
  auto table = table_with(cfi, text);
  expect_row(*table, kText, RowType::signal, 0, 0);
  expect_row(*table, kText + 0xff, RowType::signal, 0, 0);  // the byte before: callers look there
  expect_row(*table, kText + 0x108, RowType::signal, 0, 0);
  expect_row(*table, kText + 0x109, RowType::none, 0, 0);
}

TEST(Table, DebugFrameFillsWhatEhFrameLeaves) {
  CfiMaker eh;
  eh.fde(kText, 0x10, make_bytes({DW_CFA_def_cfa_offset, 16}));
  testing::ByteWriter debug;  // a .debug_frame has other ids and absolute CIE offsets
  debug.fixed<uint32_t>(20).fixed<uint32_t>(0xffffffff).u8(3).u8(0).u8(1).u8(0x78).u8(16);
  debug.raw(make_bytes({DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1, 0, 0, 0, 0, 0, 0}));
  for (uint64_t begin : {kText, kText + 0x80}) {
    debug.fixed<uint32_t>(24).fixed<uint32_t>(0).fixed(begin).fixed<uint64_t>(0x10);
    debug.raw(make_bytes({DW_CFA_def_cfa_offset, 48, 0, 0}));
  }
  auto table =
      table_of(make_elf(kText, Bytes(0x400),
                        {{".eh_frame", 0x500000, eh.section()}, {".debug_frame", 0, debug.bytes}}));
  expect_row(*table, kText, RowType::sp, 0, 2);
  expect_row(*table, kText + 0x80, RowType::sp, 0, 6);
}

TEST(Table, LinkageStubsWithoutCfiAreKnownByTheirCode) {
  Bytes text(0x400), plt(64);
  for (size_t at : {0u, 16u}) plt[at] = std::byte{0xff}, plt[at + 1] = std::byte{0x25};
  for (size_t i = 0; i < 4; ++i) plt[32 + i] = static_cast<std::byte>("\xf3\x0f\x1e\xfa"[i]);
  plt[36] = std::byte{0xff}, plt[37] = std::byte{0x25};
  auto table = table_of(make_elf(kText, text, {{".plt", kText + 0x40, plt}}));
  expect_row(*table, kText + 0x40, RowType::sp, 0, 1);
  expect_row(*table, kText + 0x45, RowType::sp, 0, 1);
  expect_row(*table, kText + 0x46, RowType::none, 0, 0);
  expect_row(*table, kText + 0x69, RowType::sp, 0, 1);
  expect_row(*table, kText + 0x6a, RowType::none, 0, 0);
  expect_row(*table, kText + 0x70, RowType::none, 0, 0);
}

TEST(Table, OverlapsAndForeignAddressesDoNoHarm) {
  CfiMaker cfi;
  cfi.fde(kText + 0x100, 0x200, make_bytes({DW_CFA_def_cfa_offset, 16}));
  cfi.fde(kText + 0x180, 0x10, make_bytes({DW_CFA_def_cfa_offset, 24}));
  cfi.fde(0, 0x1000, make_bytes({}));
  cfi.fde(kText + 0x3f0, UINT64_MAX / 2, make_bytes({}));
  cfi.fde(UINT64_MAX - 8, 0x100, make_bytes({}));
  auto table = table_with(cfi);
  expect_row(*table, kText + 0x17f, RowType::sp, 0, 2);
  expect_row(*table, kText + 0x180, RowType::sp, 0, 3);
  expect_row(*table, kText + 0x190, RowType::none, 0, 0);
  expect_row(*table, kText + 0x3ff, RowType::sp, 0, 1);
}

TEST(Table, RefusesWhatIsNotOurs) {
  EXPECT_FALSE(open_elf({}));
  EXPECT_FALSE(open_elf(make_bytes({1, 2, 3})));
  Bytes elf = make_elf(kText, Bytes(16), {}, EM_AARCH64);
  auto image = open_elf(elf);
  ASSERT_TRUE(image);
  auto bytes = build_table(**image, "");
  ASSERT_FALSE(bytes);
  EXPECT_THAT(bytes.error().what, ::testing::HasSubstr("not supported"));
}

TEST(Table, DamagedBytesAreRefused) {
  CfiMaker cfi;
  cfi.fde(kText, 0x10, make_bytes({DW_CFA_def_cfa, 3, 24}));
  auto good = table_with(cfi);
  Bytes bytes(good->bytes().begin(), good->bytes().end());
  ASSERT_TRUE(validate_table(bytes, true));
  for (size_t i = 0; i < bytes.size(); ++i) {
    Bytes bad = bytes;
    bad[i] ^= std::byte{0x40};
    EXPECT_FALSE(validate_table(bad, true)) << "byte " << i;
  }
  for (size_t n = 0; n < bytes.size(); n += 7) {
    EXPECT_FALSE(validate_table(std::span(bytes).first(n), false)) << n << " bytes";
  }
}

// Every row of a real library, looked up, says what its own program says there.
TEST(Table, AgreesWithEveryProgramOfTheCLibrary) {
  std::string path;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (auto at = line.find("/"); line.find("libc.so") != std::string::npos) path = line.substr(at);
  }
  if (path.empty()) GTEST_SKIP() << "skipped: no shared C library in this process";
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  auto image = ElfFile::open(fd.get());
  ASSERT_TRUE(image);
  auto bytes = build_table(**image, "");
  ASSERT_TRUE(bytes);
  auto table = *Table::from_bytes(std::move(*bytes));
  const auto* section = (*image)->find(".eh_frame");
  ASSERT_TRUE(section);
  auto content = std::as_bytes(std::span((*image)->bytes(*section).all()));
  Cfi cfi = Cfi::read(content, section->address, Cfi::Format::eh_frame);
  const Segment& segment = table->view().segments[0];
  uint64_t rows = 0, full = 0;
  for (const auto& fde : cfi.fdes()) {
    cfi.run(fde, [&](uint64_t begin, const RuleSet* rules) {
      ASSERT_TRUE(rules);
      uint32_t number = table->view().find(begin - segment.vaddr + segment.text);
      ASSERT_LT(number, table->view().header->row_count);
      Row row = table->view().rows[number];
      ++rows;
      full += row.type() == RowType::full;
      if (row.type() == RowType::sp || row.type() == RowType::fp) {
        EXPECT_EQ(row.cfa() * 8, static_cast<uint64_t>(rules->cfa_offset)) << std::hex << begin;
        EXPECT_EQ(rules->cfa_reg, row.type() == RowType::sp ? 7u : 6u);
      }
      EXPECT_NE(row.type(), RowType::none) << std::hex << begin;
    });
  }
  EXPECT_GT(rows, 5000u);
  EXPECT_LT(full, rows / 10);
}

class TableStoreTest : public ::testing::Test {
 protected:
  Result<std::vector<std::byte>> build() {
    ++built_;
    CfiMaker cfi;
    cfi.fde(kText, 0x10, make_bytes({DW_CFA_def_cfa_offset, 16}));
    Bytes elf = make_elf(kText, Bytes(0x400), {{".eh_frame", 0x500000, cfi.section()}});
    return build_table(**open_elf(elf), id_);
  }
  std::shared_ptr<const Table> get() {
    return TableStore(dir_).get(identity(), [&] { return build(); });
  }
  FileIdentity identity() const { return {id_, 1, inode_, 3, 4, 5}; }
  std::string file() const {
    return dir_ + "/unwind/" + identity().text() + ".v" + std::to_string(kTableVersion);
  }

  TemporaryDirectory scratch_;
  std::string dir_ = scratch_.path(), id_ = "00112233445566778899aabbccddeeff00112233";
  uint64_t inode_ = 2;
  int built_ = 0;
};

TEST_F(TableStoreTest, IsBuiltOnceAndSharedAndReadBack) {
  auto first = get();
  ASSERT_TRUE(first);
  EXPECT_EQ(get(), first) << "shared in memory";
  EXPECT_EQ(built_, 1);
  EXPECT_TRUE(std::filesystem::exists(file()));
  first.reset();
  auto again = get();
  ASSERT_TRUE(again);
  EXPECT_EQ(built_, 1) << "read from disk";
  expect_row(*again, kText, RowType::sp, 0, 2);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_ + "/unwind"), {}), 1);
}

TEST_F(TableStoreTest, ADamagedOrForeignFileIsRebuilt) {
  get();
  {
    std::fstream f(file(), std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(400);
    f.put('x');
  }
  ASSERT_TRUE(get());
  EXPECT_EQ(built_, 2);
  std::string known = file();
  id_[0] = 'f';
  std::filesystem::copy(known, file());
  ASSERT_TRUE(get());
  EXPECT_EQ(built_, 3) << "a file under another's name is not believed";
  std::ofstream(file(), std::ios::trunc) << "short";
  ASSERT_TRUE(get());
  EXPECT_EQ(built_, 4);
}

TEST_F(TableStoreTest, ABuildIdThatIsNoneNeverBecomesAPath) {
  id_ = "../../evil";
  ASSERT_TRUE(get());
  EXPECT_TRUE(std::filesystem::is_empty(dir_ + "/unwind"));
}

TEST_F(TableStoreTest, AnotherFileWithTheSameBuildIdHasATableOfItsOwn) {
  auto honest = get();
  inode_ = 77;  // a library that claims the build id of another
  auto false_one = get();
  EXPECT_NE(honest, false_one);
  EXPECT_EQ(built_, 2);
}

TEST_F(TableStoreTest, AFolderThatOthersCanWriteToIsNotUsed) {
  std::filesystem::create_directory(dir_ + "/unwind");
  std::filesystem::permissions(dir_ + "/unwind", std::filesystem::perms::all);
  ASSERT_TRUE(get());
  EXPECT_TRUE(std::filesystem::is_empty(dir_ + "/unwind"));
}

// The door of a confined process, as far as the cache needs it.
class CacheDoor final : public FileDoor {
 public:
  CacheDoor() { set_file_door(this); }
  ~CacheDoor() override { set_file_door(nullptr); }
  Result<FoundFile> open(const std::string& path, Purpose purpose) override {
    if (purpose != Purpose::cache) return fail("not of the cache");
    ++asked;
    return direct_door().open(path, purpose);
  }
  Result<NewFile> create(const std::string&, Existing) override { return fail("nothing is made"); }
  Result<UniqueFd> temporary() override { return fail("nothing is made"); }
  int asked = 0;
};

TEST_F(TableStoreTest, AConfinedProcessReadsTheCacheAndStoresNothing) {
  ASSERT_TRUE(get());
  CacheDoor door;
  ASSERT_TRUE(get());
  EXPECT_EQ(built_, 1) << "a warm cache is used";
  EXPECT_EQ(door.asked, 1);
  inode_ = 77;
  ASSERT_TRUE(get());
  EXPECT_EQ(built_, 2);
  EXPECT_FALSE(std::filesystem::exists(file())) << "it could hold anything";
}

TEST_F(TableStoreTest, ALinkInTheCacheIsNotFollowed) {
  ASSERT_TRUE(get());
  std::filesystem::rename(file(), dir_ + "/elsewhere");
  std::filesystem::create_symlink(dir_ + "/elsewhere", file());
  ASSERT_TRUE(get());
  EXPECT_EQ(built_, 2);
}

TEST(Vdso, HasATable) {
  auto image = ElfFile::open_memory(os::vdso_image().bytes);
  ASSERT_TRUE(image);
  auto bytes = build_table(**image, "");
  ASSERT_TRUE(bytes);
  auto table = *Table::from_bytes(std::move(*bytes));
  EXPECT_GT(table->view().header->row_count, 4u);
}

// glibc's clone3 has no call-frame information around its system call; two threads return from it.
TEST(Clone3, TheSystemCallIsFoundByItsCode) {
  const std::vector<uint8_t> code{0x90, 0xb8, 0xb3, 0x01, 0x00, 0x00, 0x0f, 0x05, 0x48,
                                  0x85, 0xc0, 0x7c, 0x18, 0x74, 0x01, 0xc3, 0x31, 0xed};
  auto bytes = std::as_bytes(std::span(code));
  EXPECT_EQ(X86_64::find_clone3(bytes), 6u);
  EXPECT_EQ(X86_64::find_clone3(bytes.first(15)), 15u) << "cut off before the return";
  EXPECT_EQ(X86_64::find_clone3({}), 0u);
}

}  // namespace
}  // namespace assay::unwind
