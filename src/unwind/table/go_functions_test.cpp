#include "unwind/table/go_functions.h"

#include <gtest/gtest.h>

#include "unwind/table/table.h"
#include "unwind/table/table_builder.h"
#include "unwind/testing/elf_maker.h"

namespace assay::unwind {
namespace {

using testing::Bytes;
using testing::ByteWriter;
using testing::make_bytes;
using testing::make_elf;
using testing::open_elf;

constexpr uint64_t kText = 0x401000;

// Three functions of 16 bytes: one that moves sp by 24 from its fourth byte on, a top frame, one
// that switches stacks. `text` as the header gives it; 0 leaves it to the caller.
Bytes pclntab(uint64_t text) {
  constexpr uint64_t kHeader = 72, kDeltas = kHeader, kTable = 80, kRecords = 28, kRecord = 44;
  ByteWriter w;
  w.fixed<uint32_t>(0xfffffff1).fixed<uint16_t>(0).u8(1).u8(8);
  w.fixed<uint64_t>(3).fixed<uint64_t>(0).fixed(text);
  w.fixed<uint64_t>(0).fixed<uint64_t>(0).fixed<uint64_t>(0).fixed(kDeltas).fixed(kTable);
  // Offset 1: value −1 + 1 = 0 for 4 bytes, then +24 for 12, then the end.
  w.raw(make_bytes({0, 2, 4, 48, 12, 0, 0, 0}));
  for (uint32_t i = 0; i < 3; ++i) w.fixed(i * 16).fixed<uint32_t>(kRecords + i * kRecord);
  w.fixed<uint32_t>(48);
  for (uint8_t flag : {0, 1, 2}) {
    size_t start = w.bytes.size();
    for (uint32_t field : {0, 0, 0, 0, 1, 0, 0, 0, 0, 0}) w.fixed(field);
    w.u8(0).u8(flag);
    w.bytes.resize(start + kRecord);
  }
  return w.bytes;
}

TEST(GoFunctions, ReadsDeltasAndRoots) {
  for (uint64_t text : {kText, uint64_t{0}}) {
    Bytes bytes = pclntab(text);
    auto go = GoFunctions::read(bytes, kText);
    ASSERT_EQ(go.functions().size(), 3u);
    EXPECT_EQ(go.functions()[0].begin, kText);
    EXPECT_EQ(go.functions()[0].end, kText + 16);
    EXPECT_TRUE(go.functions()[1].is_top);
    EXPECT_TRUE(go.functions()[2].switches_stacks);
    std::vector<std::pair<uint64_t, int64_t>> rows;
    go.run(go.functions()[0], [&](uint64_t at, int64_t bytes_moved) {
      rows.push_back({at, bytes_moved});
    });
    EXPECT_EQ(rows, (std::vector<std::pair<uint64_t, int64_t>>{{kText, 0}, {kText + 4, 24}}));
  }
}

TEST(GoFunctions, BecomeRowsOfTheTable) {
  Bytes elf = make_elf(kText, Bytes(48), {{".gopclntab", 0x500000, pclntab(kText)}});
  auto built = build_table(**open_elf(elf), "");
  ASSERT_TRUE(built);
  auto table = *Table::from_bytes(std::move(*built));
  auto bits = [&](uint64_t text) {
    return table->view().rows[table->view().find(text)].rule_bits();
  };
  EXPECT_TRUE(table->is_go());
  EXPECT_EQ(bits(0), Row::pack(RowType::sp, kFpSame, 1));
  EXPECT_EQ(bits(3), Row::pack(RowType::sp, kFpSame, 1));
  EXPECT_EQ(bits(4), Row::pack(RowType::sp, kFpLost, 4));
  EXPECT_EQ(bits(16), Row::pack(RowType::end, 0, 0));
  EXPECT_EQ(bits(32), Row::pack(RowType::end, 0, kEndOfThisStack));
}

TEST(GoFunctions, DamagedBytesYieldNothingWorse) {
  Bytes good = pclntab(kText);
  for (size_t n = 0; n < good.size(); ++n) {
    Bytes cut(good.begin(), good.begin() + static_cast<ptrdiff_t>(n));
    auto go = GoFunctions::read(cut, kText);
    for (const auto& f : go.functions()) go.run(f, [](uint64_t, int64_t) {});
  }
  for (size_t i = 0; i < good.size(); ++i) {
    for (int value : {0, 1, 0x7f, 0x80, 0xff}) {
      Bytes bad = good;
      bad[i] = static_cast<std::byte>(value);
      auto go = GoFunctions::read(bad, kText);
      for (const auto& f : go.functions()) go.run(f, [](uint64_t, int64_t) {});
    }
  }
}

}  // namespace
}  // namespace assay::unwind
