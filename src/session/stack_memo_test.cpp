#include "session/stack_memo.h"

#include <gtest/gtest.h>

namespace assay::session {
namespace {

TEST(StackMemo, KnowsExactlyTheWordsItKept) {
  StackMemo memo;
  std::vector<uint64_t> words{7, 0, 2, 0x1000, 0x2000};
  EXPECT_EQ(memo.find(words), nullptr);
  memo.keep(words, {41});
  ASSERT_NE(memo.find(words), nullptr);
  EXPECT_EQ(memo.find(words)->value, 41u);
  for (size_t i = 0; i < words.size(); ++i) {
    std::vector<uint64_t> other = words;
    ++other[i];
    EXPECT_EQ(memo.find(other), nullptr) << i;
  }
  EXPECT_EQ(memo.find(std::span(words).first(4)), nullptr);
  memo.clear();
  EXPECT_EQ(memo.find(words), nullptr);
}

TEST(StackMemo, ForgetsWhenItIsFullAndGoesOn) {
  StackMemo memo;
  for (uint64_t i = 0; i < 200'000; ++i) {
    std::vector<uint64_t> words{i, i * 3};
    ASSERT_EQ(memo.find(words), nullptr);
    memo.keep(words, {static_cast<uint32_t>(i)});
    ASSERT_EQ(memo.find(words)->value, i);
  }
}

}  // namespace
}  // namespace assay::session
