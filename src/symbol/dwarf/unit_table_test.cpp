// Unit tables: what they answer, which references they refuse, and how they are kept on disk.
#include "symbol/dwarf/unit_table.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "symbol/dwarf/unit_cache.h"

namespace assay::symbol {
namespace {

namespace fs = std::filesystem;

UnitTable small_table() {
  UnitTable table;
  table.pool = "file.cnameother";
  table.files = {{0, 0}, {0, 6}};
  table.names = {{{6, 4}, 0}, {{10, 5}, 0}};
  table.rows = {{0x10, 1, 5}, {0x18, 1, 6}, {0x20, LineRow::kEnd, 0}};
  table.ranges = {{0x10, 0x20}, {0x14, 0x18}};
  table.nodes = {{0, 3, 0, 0, 0, 1, 2, 0}, {1, 1, 1, 4, 1, 1, 2, 1}};
  table.spans = {{0x10, 0x20, 0, 0}};
  return table;
}

TEST(UnitTable, FindsLinesAndInlinedFunctions) {
  UnitTable table = small_table();
  ASSERT_TRUE(table.check());
  std::vector<model::Location> out;
  table.find(0x14, true, out);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].function, "other");
  EXPECT_EQ(out[0].line, 5u);
  EXPECT_EQ(out[1].function, "name");
  EXPECT_EQ(out[1].line, 4u);
  out.clear();
  table.find(0x14, false, out);
  ASSERT_EQ(out.size(), 1u) << "without inlines the function alone";
  EXPECT_EQ(out[0].function, "name");
  out.clear();
  table.find(0x20, true, out);
  EXPECT_TRUE(out.empty());
}

TEST(UnitTable, BytesThatAreNoTableAreRefused) {
  std::string good = encode_unit_table(small_table());
  ASSERT_TRUE(decode_unit_table(good).has_value());
  std::mt19937 random(2);
  for (int i = 0; i < 5000; ++i) {
    std::string bad = good;
    for (size_t k = 1 + random() % 4; k > 0; --k)
      bad[random() % bad.size()] = static_cast<char>(random());
    if (i % 5 == 0) bad.resize(random() % bad.size());
    if (auto table = decode_unit_table(bad)) {
      std::vector<model::Location> out;
      for (uint64_t at = 0; at < 0x30; ++at) table->find(at, true, out);
    }
  }
}

TEST(UnitTable, ReferencesThatLeadOutsideAreRefused) {
  using Change = std::function<void(UnitTable&)>;
  const std::pair<const char*, Change> kChanges[] = {
      {"a name beyond the pool", [](UnitTable& t) { t.names[1].text.size = 6; }},
      {"a name that wraps",
       [](UnitTable& t) {
         t.names[0].text = {UINT32_MAX, 2};
       }},
      {"a file beyond the pool", [](UnitTable& t) { t.files[1].at = 16; }},
      {"a row of no file", [](UnitTable& t) { t.rows[0].file = 2; }},
      {"a node of no name", [](UnitTable& t) { t.nodes[0].name = 2; }},
      {"a call in no file", [](UnitTable& t) { t.nodes[1].call_file = 2; }},
      {"ranges beyond the last", [](UnitTable& t) { t.nodes[1].range_count = 2; }},
      {"ranges that wrap", [](UnitTable& t) { t.nodes[1].first_range = UINT32_MAX; }},
      {"a subtree that ends before it begins", [](UnitTable& t) { t.nodes[1].subtree_end = 1; }},
      {"a subtree beyond the last node", [](UnitTable& t) { t.nodes[0].subtree_end = 3; }},
      {"a span of no node", [](UnitTable& t) { t.spans[0].node = 2; }},
  };
  ASSERT_TRUE(small_table().check());
  for (const auto& [what, change] : kChanges) {
    UnitTable table = small_table();
    change(table);
    EXPECT_FALSE(table.check()) << what;
    EXPECT_FALSE(decode_unit_table(encode_unit_table(table))) << what;
  }
}

TEST(UnitTable, OfFunctionsThatOverlapTheInnermostAnswers) {
  UnitTable table = small_table();
  table.ranges.push_back({0x14, 0x16});
  table.nodes.push_back({1, 9, 0, 0, 2, 1, 3, 0});
  table.spans = {{0x10, 0x20, 0, 0}, {0x14, 0x16, 2, 0}};
  ASSERT_TRUE(table.check());
  std::vector<model::Location> out;
  table.find(0x15, true, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].function_line, 9u);
  out.clear();
  table.find(0x16, true, out);
  ASSERT_FALSE(out.empty());
  EXPECT_EQ(out.back().function, "name") << "the outer one goes on behind it";
}

TEST(UnitTable, LinkersNamesAreShownForPeople) {
  UnitTable table = small_table();
  table.pool = "file.c_ZN1a1bEv";
  table.names = {{{6, 9}, 1}, {{6, 4}, 0}};
  ASSERT_TRUE(table.check());
  std::vector<model::Location> out;
  table.find(0x10, true, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].function, "a::b()");
  EXPECT_EQ(out[0].system_name, "_ZN1a1bEv");
}

TEST(UnitTable, EncodingKeepsEverything) {
  UnitTable table = small_table();
  auto back = decode_unit_table(encode_unit_table(table));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->pool, table.pool);
  EXPECT_EQ(encode_unit_table(*back), encode_unit_table(table));
  std::vector<model::Location> out;
  back->find(0x14, true, out);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].file, "file.c");
}

class UnitCacheOnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "assay-units-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { fs::remove_all(dir_); }

  void fill(uint64_t fingerprint = 1) const {
    UnitCache cache(dir_, kBuildId, fingerprint);
    cache.keep_index({{0x10, 0x20, 5, 0}});
    cache.keep_unit(5, small_table());
  }

  static constexpr const char* kBuildId = "abcdef0123456789";
  std::string dir_;
};

TEST_F(UnitCacheOnDisk, WhatWasKeptIsThereTheNextTime) {
  fill();
  UnitCache cache(dir_, kBuildId, 1);
  EXPECT_TRUE(cache.on_disk());
  ASSERT_TRUE(cache.has_index() && cache.has_unit(5));
  EXPECT_FALSE(cache.has_unit(6));
  auto index = cache.index();
  ASSERT_TRUE(index && index->size() == 1);
  EXPECT_EQ((*index)[0].unit, 5u);
  auto table = cache.unit(5);
  ASSERT_TRUE(table);
  EXPECT_EQ(encode_unit_table(*table), encode_unit_table(small_table()));
  EXPECT_FALSE(cache.unit(6));
}

TEST_F(UnitCacheOnDisk, AnotherDebugFileOfTheSameBuildIsNotMistakenForIt) {
  fill(1);
  UnitCache other(dir_, kBuildId, 2);
  EXPECT_FALSE(other.has_index());
  EXPECT_FALSE(other.has_unit(5));
}

TEST_F(UnitCacheOnDisk, NamesThatAreNoBuildIdMakeNoFile) {
  for (const char* name : {"", "../../etc/passwd", "ab", "ABCDEF", "abcd/efgh"}) {
    UnitCache cache(dir_, name, 1);
    EXPECT_FALSE(cache.on_disk()) << name;
    cache.keep_unit(1, small_table());
    EXPECT_TRUE(cache.unit(1)) << "kept in memory";
  }
  EXPECT_TRUE(fs::is_empty(dir_));
}

TEST_F(UnitCacheOnDisk, DamagedPartsAreNotBelieved) {
  fill();
  std::string path = UnitCache(dir_, kBuildId, 1).path();
  std::ifstream in(path, std::ios::binary);
  std::string good((std::istreambuf_iterator<char>(in)), {});
  in.close();
  std::string truth = encode_unit_table(small_table());
  int refused = 0;
  for (size_t at = 0; at < good.size(); ++at) {  // every byte, one at a time
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x41);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bad;
    UnitCache cache(dir_, kBuildId, 1);
    auto table = cache.unit(5);
    if (table) {
      EXPECT_EQ(encode_unit_table(*table), truth) << at;
    }
    refused += !table;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace assay::symbol
