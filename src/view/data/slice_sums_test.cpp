#include "view/data/slice_sums.h"

#include <map>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

namespace assay::view {
namespace {

using Key = std::tuple<uint32_t, uint32_t, uint8_t, uint32_t>;  // bin, thread, state, node
using Sums = std::map<Key, std::pair<int64_t, uint64_t>>;

// Random cells, mostly in the order of time, as they come from a run.
Sums fill(SliceSums& sums, int cells, uint32_t threads) {
  Sums expected;
  std::mt19937 random(3);
  auto below = [&](uint32_t most) { return static_cast<uint32_t>(random() % most); };
  for (int i = 0; i < cells; ++i) {
    auto newest = static_cast<uint32_t>(int64_t{sums.bins().count()} * i / cells);
    uint32_t bin = below(20) == 0 ? below(newest + 1) : newest;
    uint32_t thread = below(threads), node = below(500);
    auto state = static_cast<uint8_t>(below(21));
    int64_t ns = below(1'000'000);
    sums.add(bin, {thread}, state, node, ns, 1);
    auto& sum = expected[{bin, thread, state, node}];
    sum.first += ns;
    ++sum.second;
  }
  sums.finish();
  return expected;
}

constexpr uint32_t kAll = UINT32_MAX;

Sums read(const SliceSums& sums, uint32_t first, uint32_t last, uint32_t thread = kAll) {
  Sums found;
  sums.for_each(
      first, last, [&](model::ThreadId id) { return thread == kAll || id.value == thread; },
      [&](uint32_t slice, model::ThreadId id, uint8_t state, uint32_t node, int64_t ns,
          uint64_t count) {
        auto& sum = found[{slice, id.value, state, node}];
        sum.first += ns;
        sum.second += count;
      });
  return found;
}

Sums joined(const Sums& sums, uint32_t width) {
  Sums result;
  for (const auto& [key, sum] : sums) {
    auto [bin, thread, state, node] = key;
    auto& into = result[{bin / width, thread, state, node}];
    into.first += sum.first;
    into.second += sum.second;
  }
  return result;
}

TEST(SliceSums, GiveBackWhatWasAdded) {
  SliceSums sums(0, 1'000'000, 16, 3, SIZE_MAX);
  Sums expected = fill(sums, 100'000, 3);
  EXPECT_EQ(sums.count(), 16u);
  EXPECT_EQ(read(sums, 0, 16), expected);
  Sums part = read(sums, 4, 7, 1);
  std::erase_if(expected, [](const auto& row) {
    return std::get<0>(row.first) < 4 || std::get<0>(row.first) >= 7 || std::get<1>(row.first) != 1;
  });
  EXPECT_EQ(part, expected);
}

TEST(SliceSums, JoinSlicesWhereTheRoomIsSmall) {
  SliceSums sums(0, 1'000'000, 16, 3, 300'000);
  Sums expected = fill(sums, 100'000, 3);
  ASSERT_GT(sums.count(), 0u);
  EXPECT_LT(sums.count(), 16u);
  EXPECT_LE(sums.packed_bytes(), 300'000u);
  EXPECT_EQ(sums.border(sums.count()), 1'000'000);
  EXPECT_EQ(read(sums, 0, sums.count()), joined(expected, sums.width()));
}

TEST(SliceSums, KeepNothingWhereEvenOneSliceIsTooMuch) {
  SliceSums sums(0, 1'000'000, 16, 3, 1'000);
  fill(sums, 100'000, 3);
  EXPECT_EQ(sums.count(), 0u);
  EXPECT_TRUE(read(sums, 0, 16).empty());
}

TEST(Bins, CutWithoutGapsAtTheirBorders) {
  Bins bins(100, 1100, 7);
  int64_t all = 0;
  uint32_t next = 0;
  bins.cut(150, 1100, [&](uint32_t bin, int64_t ns) {
    EXPECT_EQ(bin, next++);
    all += ns;
  });
  EXPECT_EQ(next, 7u);
  EXPECT_EQ(all, 950);
  for (TimeNs time = 100; time < 1100; ++time) {
    uint32_t bin = bins.of(time);
    EXPECT_LE(bins.border(bin), time);
    EXPECT_GT(bins.border(bin + 1), time);
  }
  EXPECT_EQ(bins.of(50), 0u);
  EXPECT_EQ(bins.of(5000), 6u);
  EXPECT_EQ(Bins(5, 5, 3).of(9), 0u);
  // A finer division has the coarser one's borders.
  Bins fine(100, 1100, 21);
  for (uint32_t bin = 0; bin <= 7; ++bin) EXPECT_EQ(fine.border(3 * bin), bins.border(bin));
}

}  // namespace
}  // namespace assay::view
