#include "evidence/stacks/kernel_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::evidence {
namespace {

TEST(KernelPaths, TheLastPathOfAStackIsRecalled) {
  KernelPaths paths;
  EXPECT_TRUE(paths.recall({1}).empty());
  paths.learn({1}, std::vector<uint64_t>{10, 20});
  paths.learn({2}, std::vector<uint64_t>{30});
  EXPECT_THAT(paths.recall({1}), testing::ElementsAre(10, 20));
  paths.learn({1}, std::vector<uint64_t>{40});
  EXPECT_THAT(paths.recall({1}), testing::ElementsAre(40));
  EXPECT_THAT(paths.recall({2}), testing::ElementsAre(30));
}

TEST(KernelPaths, MemoryIsBounded) {
  KernelPaths paths;
  for (uint32_t i = 0; i < 60'000; ++i) paths.learn({i}, std::vector<uint64_t>{i});
  EXPECT_TRUE(paths.recall({0}).empty()) << "old ones make room";
  EXPECT_FALSE(paths.recall({59'999}).empty());
}

}  // namespace
}  // namespace assay::evidence
