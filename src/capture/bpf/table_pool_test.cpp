#include "capture/bpf/table_pool.h"

#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "capture/bpf/shared.h"

namespace assay::capture {
namespace {

constexpr uint32_t kBefore = 6u << 8;

class TablePoolTest : public testing::Test {
 protected:
  // The search of programs/walk.bpf.h.
  uint32_t find(const TablePool::Place& place, uint64_t text) {
    uint32_t word = place.index_at + static_cast<uint32_t>(text / 256);
    uint32_t index = chunk(word)[word % bpf::kChunkWords];
    uint32_t count = index & ((1u << bpf::kIndexCountBits) - 1);
    uint32_t first = place.rows_at + (index >> bpf::kIndexCountBits);
    const uint32_t* rows = chunk(first);
    uint32_t at = first % bpf::kChunkWords, end = at + count;
    EXPECT_LE(end, +bpf::kChunkWords) << "a page's rows lie in one chunk";
    for (uint32_t step = 128; step > 0; step /= 2) {
      if (at + step < end && (rows[at + step] & 0xff) <= text % 256) at += step;
    }
    return rows[at] & ~0xffu;
  }
  const uint32_t* chunk(uint32_t word) { return chunks_.at(word / bpf::kChunkWords).get(); }

  uint32_t* grow(uint32_t number) {
    EXPECT_EQ(number, chunks_.size());
    if (chunks_.size() >= most_chunks_) return nullptr;
    chunks_.push_back(std::make_unique<uint32_t[]>(bpf::kChunkWords));
    return chunks_.back().get();
  }

  std::vector<std::unique_ptr<uint32_t[]>> chunks_;
  size_t most_chunks_ = 1000;
  TablePool pool_{[this](uint32_t number) { return grow(number); }};
};

struct MadeTable {
  std::vector<uint32_t> index{0}, rows;
  std::vector<uint32_t> truth;  // rule bits by text address
};

MadeTable make_table(uint32_t seed, size_t pages) {
  std::mt19937 random(seed);
  MadeTable table;
  uint32_t now = kBefore;
  for (size_t page = 0; page < pages; ++page) {
    unsigned density = random() % 4;  // none, few, many, all
    for (uint32_t low = 0; low < 256; ++low) {
      bool begins = density == 3 || (density > 0 && random() % (density == 1 ? 100 : 4) == 0);
      if (begins) {
        now = static_cast<uint32_t>(random()) & ~0xffu;
        table.rows.push_back(now | low);
      }
      table.truth.push_back(now);
    }
    table.index.push_back(static_cast<uint32_t>(table.rows.size()));
  }
  return table;
}

TEST_F(TablePoolTest, EveryAddressFindsItsRow) {
  std::vector<std::pair<TablePool::Place, MadeTable>> placed;
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    MadeTable table = make_table(seed, seed * 60);
    auto place = pool_.add(table.index, table.rows, kBefore);
    ASSERT_TRUE(place);
    EXPECT_NE(place->index_at, 0u) << "0 means that there is no table";
    placed.emplace_back(*place, std::move(table));
  }
  EXPECT_GT(chunks_.size(), 3u) << "tables cross from one chunk into the next";
  for (const auto& [place, table] : placed) {
    for (size_t text = 0; text < table.truth.size(); ++text)
      ASSERT_EQ(find(place, text), table.truth[text]) << text;
  }
}

TEST_F(TablePoolTest, RowsAreNotRepeatedMuch) {
  MadeTable table = make_table(7, 2000);
  ASSERT_TRUE(pool_.add(table.index, table.rows, kBefore));
  EXPECT_LT(pool_.words(), table.rows.size() + table.index.size() + 2000);
}

TEST_F(TablePoolTest, AModuleWithAMillionRowsCostsFourBytesForEach) {
  MadeTable table = make_table(3, 16'000);
  ASSERT_GT(table.rows.size(), 1'000'000u);
  auto place = pool_.add(table.index, table.rows, kBefore);
  ASSERT_TRUE(place);
  for (size_t text = 0; text < table.truth.size(); text += 97)
    ASSERT_EQ(find(*place, text), table.truth[text]) << text;
  // A page may repeat one row, and ends of chunks stay empty: less than a tenth.
  size_t bytes = 4 * (table.rows.size() + table.index.size());
  EXPECT_LT(pool_.bytes(), bytes + bytes / 10 + TablePool::kChunkBytes);
}

TEST_F(TablePoolTest, AFullPoolSaysSoAndKeepsWhatItHas) {
  most_chunks_ = 2;
  MadeTable small = make_table(1, 50), large = make_table(2, 3000);
  auto first = pool_.add(small.index, small.rows, kBefore);
  ASSERT_TRUE(first);
  EXPECT_FALSE(pool_.add(large.index, large.rows, kBefore));
  EXPECT_TRUE(pool_.add(small.index, small.rows, kBefore)) << "a small one still fits";
  EXPECT_EQ(find(*first, 1234), small.truth[1234]);
}

TEST_F(TablePoolTest, ATableThatContradictsItselfIsRefused) {
  std::vector<uint32_t> rows(10);
  EXPECT_FALSE(pool_.add(std::vector<uint32_t>{0, 11}, rows, kBefore));
  EXPECT_FALSE(pool_.add(std::vector<uint32_t>{0, 8, 4}, rows, kBefore));
  EXPECT_FALSE(pool_.add(std::vector<uint32_t>{0}, rows, kBefore));
  rows.resize(1000);
  EXPECT_FALSE(pool_.add(std::vector<uint32_t>{0, 300}, rows, kBefore)) << "a page has 256 bytes";
}

}  // namespace
}  // namespace assay::capture
