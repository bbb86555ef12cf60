#include "inject/inproc/cpu/sample_table.h"

#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace assay::inproc {
namespace {

TEST(SampleTable, AddsUpTheSameStackAndTellsOthersApart) {
  SampleTable table;
  ASSERT_TRUE(table.open(8, 1024));
  uintptr_t stack[] = {1, 2, 3};
  uint32_t row = table.add(stack, 3, 0, 0, 1, 10);
  EXPECT_EQ(table.add(stack, 3, 0, 0, 2, 20), row);
  EXPECT_NE(table.add(stack, 2, 0, 0, 1, 1), row);
  EXPECT_NE(table.add(stack, 3, 7, 0, 1, 1), row);
  EXPECT_NE(table.add(stack, 3, 0, 1, 1, 1), row);
  SampleRow out;
  ASSERT_TRUE(table.row(row, out));
  EXPECT_EQ(out.count, 3);
  EXPECT_EQ(out.value, 30);
  EXPECT_EQ(out.frames, 3U);
  EXPECT_EQ(out.pcs[2], 3U);
}

TEST(SampleTable, CountsWhatDoesNotFit) {
  SampleTable table;
  ASSERT_TRUE(table.open(8, 64));
  for (uintptr_t i = 1; i <= 100; ++i) table.add(&i, 1, 0, 0, 1, 1);
  int64_t kept = 0;
  SampleRow out;
  for (uint32_t i = 0; i < table.rows(); ++i) kept += table.row(i, out) ? out.count : 0;
  EXPECT_EQ(kept, 64);
  EXPECT_EQ(table.dropped(), 36U);
  table.clear();
  for (uint32_t i = 0; i < table.rows(); ++i) EXPECT_FALSE(table.row(i, out));
}

TEST(SampleTable, LosesNothingBetweenThreads) {
  SampleTable table;
  ASSERT_TRUE(table.open(12, 1 << 16));
  constexpr int kThreads = 4, kRounds = 5000, kStacks = 37;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (uintptr_t i = 0; i < kRounds; ++i) {
        uintptr_t stack[] = {i % kStacks + 1, 99};
        table.add(stack, 2, 0, 0, 1, 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<uintptr_t, int64_t> counts;
  SampleRow out;
  for (uint32_t i = 0; i < table.rows(); ++i)
    if (table.row(i, out)) counts[out.pcs[0]] += out.count;
  EXPECT_EQ(counts.size(), static_cast<size_t>(kStacks));
  int64_t sum = 0;
  for (auto [pc, count] : counts) sum += count;
  EXPECT_EQ(sum, kThreads * kRounds);
  EXPECT_EQ(table.dropped(), 0U);
}

}  // namespace
}  // namespace assay::inproc
