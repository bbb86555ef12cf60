#include "inject/inproc/lifecycle/label_table.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace assay::inproc {
namespace {

std::vector<std::pair<std::string, std::string>> pairs(LabelSet set) {
  LabelPair out[kMaxLabelDepth];
  size_t count = pairs_of(set, out);
  std::vector<std::pair<std::string, std::string>> made;
  for (size_t i = 0; i < count; ++i) made.emplace_back(out[i].key, out[i].value);
  return made;
}

TEST(LabelTable, ScopesNestAndEndWhereTheyBegan) {
  ASSERT_EQ(current_label(), 0U);
  LabelSet outer = push_label("method", "Get");
  LabelSet inner = push_label("shard", "7");
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(pairs(current_label()), (Pairs{{"shard", "7"}, {"method", "Get"}}));
  LabelSet hiding = push_label("method", "Put");
  EXPECT_EQ(pairs(current_label()), (Pairs{{"method", "Put"}, {"shard", "7"}}));
  pop_label(hiding);
  pop_label(inner);
  EXPECT_EQ(pairs(current_label()), (Pairs{{"method", "Get"}}));
  pop_label(outer);
  EXPECT_EQ(current_label(), 0U);
}

TEST(LabelTable, EqualSetsAreTheSameNumberOnEveryThread) {
  LabelSet before = push_label("k", "v");
  LabelSet here = current_label();
  pop_label(before);
  LabelSet there = 0;
  std::thread([&] {
    LabelSet none = push_label("k", "v");
    there = current_label();
    pop_label(none);
  }).join();
  EXPECT_EQ(here, there);
}

TEST(LabelTable, LongTextsAreCutAndANonsenseNumberIsHarmless) {
  std::string longest(10'000, 'x');
  LabelSet before = push_label("long", longest);
  ASSERT_EQ(pairs(current_label()).size(), 1U);
  EXPECT_EQ(pairs(current_label())[0].second.size(), kMaxLabelBytes);
  pop_label(before);
  EXPECT_TRUE(pairs(4'000'000'000U).empty());
  pop_label(4'000'000'000U);
  EXPECT_EQ(current_label(), 0U);
}

TEST(LabelTable, ManyThreadsInternTheSameAndDifferentLabels) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 2000; ++i) {
        std::string value = std::to_string(i % 100 + (i % 3 == 0 ? 1000 * t : 0));
        LabelSet before = push_label("n", value);
        EXPECT_EQ(pairs(current_label())[0].second, value);
        pop_label(before);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LabelTable, BoundedWhateverTheHostDoes) {
  uint64_t before = dropped_labels();
  for (int i = 0; i < 60'000; ++i) {
    LabelSet previous = push_label("request", "id-" + std::to_string(i));
    pop_label(previous);
  }
  EXPECT_GT(dropped_labels(), before);
  EXPECT_EQ(current_label(), 0U);
}

}  // namespace
}  // namespace assay::inproc
