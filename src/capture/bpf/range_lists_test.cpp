#include "capture/bpf/range_lists.h"

#include <vector>

#include <gtest/gtest.h>

namespace assay::capture {
namespace {

std::vector<bpf::range> some_ranges(uint64_t first, size_t count) {
  std::vector<bpf::range> ranges;
  for (size_t i = 0; i < count; ++i)
    ranges.push_back({first + i * 0x1000, first + (i + 1) * 0x1000, i, 0, 0});
  return ranges;
}

class RangeListsTest : public testing::Test {
 protected:
  std::span<const bpf::range> read(uint64_t code) {
    return std::span(memory_).subspan(code & 0xffffff, code >> 24 & 0xffff);
  }
  std::vector<bpf::range> memory_ = std::vector<bpf::range>(100);
  RangeLists lists_{memory_};
};

TEST_F(RangeListsTest, EqualListsAreStoredOnce) {
  uint64_t parent = lists_.set(1, some_ranges(0x1000, 10), 0);
  uint64_t child = lists_.set(2, some_ranges(0x1000, 10), 0);
  EXPECT_EQ(parent, child);
  EXPECT_EQ(lists_.lists(), 1u);
  EXPECT_EQ(read(child).size(), 10u);
  EXPECT_EQ(read(child)[9].begin, 0xa000u);
}

TEST_F(RangeListsTest, ANewListIsANewWord) {
  uint64_t before = lists_.set(1, some_ranges(0x1000, 10), 0);
  uint64_t after = lists_.set(1, some_ranges(0x2000, 10), 0);
  EXPECT_NE(before, after);
  EXPECT_NE(after, 0u);
  EXPECT_EQ(read(before)[0].begin, 0x1000u) << "whoever still reads the old one reads no mixture";
  EXPECT_EQ(lists_.code_of(1), after);
  EXPECT_EQ(lists_.set(1, some_ranges(0x2000, 10), 0), after) << "nothing changed";
}

TEST_F(RangeListsTest, PlacesAreUsedAgainAfterAWhile) {
  for (int i = 0; i < 50; ++i) {
    TimeNs now = i * 2 * kNsPerSecond;
    ASSERT_NE(lists_.set(1, some_ranges(0x1000 * static_cast<uint64_t>(i + 1), 40), now), 0u) << i;
  }
  EXPECT_LE(lists_.lists(), 2u);
}

TEST_F(RangeListsTest, NoRoomIsZeroAndMendsItself) {
  EXPECT_NE(lists_.set(1, some_ranges(0x1000, 60), 0), 0u);
  EXPECT_EQ(lists_.set(2, some_ranges(0x2000, 60), 0), 0u);
  lists_.forget(1, 0);
  EXPECT_EQ(lists_.set(2, some_ranges(0x2000, 60), kNsPerMs), 0u) << "it may still be read";
  EXPECT_NE(lists_.set(2, some_ranges(0x2000, 60), 2 * kNsPerSecond), 0u);
}

}  // namespace
}  // namespace assay::capture
