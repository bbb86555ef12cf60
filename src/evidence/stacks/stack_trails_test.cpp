#include "evidence/stacks/stack_trails.h"

#include <map>
#include <random>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

namespace assay::evidence {
namespace {

// Interns frame by frame, and counts how often it is asked.
struct Table {
  std::map<std::tuple<uint32_t, uint64_t, bool, uint32_t>, uint32_t> ids;
  uint32_t space = 1;
  size_t asked = 0;
  model::StackId intern(model::StackId parent, uint64_t address, bool is_kernel) {
    ++asked;
    auto key = std::tuple(parent.value, address, is_kernel, is_kernel ? 0 : space);
    return {ids.try_emplace(key, static_cast<uint32_t>(ids.size() + 100)).first->second};
  }
  model::StackId whole(const StackTrails::Stack& stack) {
    model::StackId id = stack.root;
    for (size_t i = 0; i < stack.words.size(); ++i) {
      id = intern(id, stack.words[i], i >= stack.user_words);
    }
    return id;
  }
};

class StackTrailsTest : public testing::Test {
 protected:
  model::StackId find(pid_t tid, const std::vector<uint64_t>& words, size_t user_words,
                      uint32_t root = 0) {
    return trails_.find(tid, {{root}, table_.space, words, user_words},
                        [&](model::StackId parent, uint64_t address, bool is_kernel) {
                          return table_.intern(parent, address, is_kernel);
                        });
  }
  size_t asked() { return std::exchange(table_.asked, 0); }
  Table table_;
  StackTrails trails_{2048};  // soon full
};

TEST_F(StackTrailsTest, OnlyWhatIsNewIsInterned) {
  model::StackId first = find(7, {1, 2, 3, 4}, 4);
  EXPECT_EQ(asked(), 4u);
  EXPECT_EQ(find(7, {1, 2, 3, 4}, 4), first);
  EXPECT_EQ(asked(), 0u);
  EXPECT_NE(find(7, {1, 2, 9}, 3), first);
  EXPECT_EQ(asked(), 1u);
  EXPECT_EQ(find(7, {1, 2, 3, 4}, 4), first) << "known, though the last stack was another";
  EXPECT_EQ(find(8, {1, 2, 3, 4}, 4), first) << "of another thread too";
  EXPECT_EQ(asked(), 0u);
  EXPECT_EQ(find(8, {}, 0).value, 0u);
  EXPECT_EQ(find(8, {}, 0, 5).value, 5u) << "nothing but its root";
}

TEST_F(StackTrailsTest, TheSameWordInTheKernelIsAnotherFrame) {
  model::StackId user = find(7, {1, 2, 3}, 3);
  model::StackId kernel = find(7, {1, 2, 3}, 2);
  EXPECT_NE(user, kernel);
  EXPECT_EQ(find(7, {1, 2, 3}, 3), user);
  EXPECT_EQ(find(7, {1, 2, 3}, 2), kernel);
}

TEST_F(StackTrailsTest, WhatIsMappedAnewIsAskedForAnew) {
  model::StackId before = find(7, {1, 2, 3}, 2);
  table_.space = 2;
  EXPECT_NE(find(7, {1, 2, 3}, 2), before);
  EXPECT_EQ(asked(), 6u) << "the kernel's frame has another caller";
  EXPECT_NE(find(7, {1, 2, 3}, 2, 50), find(7, {1, 2, 3}, 2)) << "other roots, other stacks";
}

TEST_F(StackTrailsTest, IdsAreThoseOfInterningEveryFrame) {
  std::mt19937 random(1);
  std::vector<uint64_t> words;
  for (int i = 0; i < 30'000; ++i) {
    words.clear();
    size_t depth = random() % 12;
    // Mostly a few addresses; now and then any, so that the nodes run full.
    for (size_t d = 0; d < depth; ++d) words.push_back(random() % 4 ? random() % 5 : random());
    size_t user = depth == 0 ? 0 : random() % (depth + 1);
    uint32_t root = random() % 2;
    model::StackId got = find(static_cast<pid_t>(random() % 3), words, user, root);
    ASSERT_EQ(got, table_.whole({{root}, table_.space, words, user}));
    if (random() % 1000 == 0) table_.space = 1 + random() % 3;
    if (random() % 1000 == 0) trails_.forget(static_cast<pid_t>(random() % 3));
  }
}

}  // namespace
}  // namespace assay::evidence
