#include "target/pools.h"

#include <gmock/gmock.h>

namespace assay::target {
namespace {

using testing::ElementsAre;

TEST(PoolName, ReplacesNumbers) {
  EXPECT_EQ(pool_name("grpc_worker-1"), "grpc_worker-*");
  EXPECT_EQ(pool_name("pool-3-thread-12"), "pool-*-thread-*");
  EXPECT_EQ(pool_name("DrogonIoLoop3"), "DrogonIoLoop*");
  EXPECT_EQ(pool_name("io:2/4"), "io:*/*");
  EXPECT_EQ(pool_name("007"), "*");
}

TEST(PoolName, KeepsNamesWithoutNumbers) {
  EXPECT_EQ(pool_name("jemalloc_bg_thd"), "jemalloc_bg_thd");
  EXPECT_EQ(pool_name(""), "");
  EXPECT_EQ(pool_name("\xff\n(x)"), "\xff\n(x)");
}

TEST(PoolNames, GroupsWhatDiffersInANumber) {
  EXPECT_THAT(pool_names({"srv", "w-1", "w-2", "w-10"}), ElementsAre("srv", "w-*", "w-*", "w-*"));
}

TEST(PoolNames, ASingleMemberKeepsItsName) {
  EXPECT_THAT(pool_names({"utf8conv", "w-1"}), ElementsAre("utf8conv", "w-1"));
  EXPECT_THAT(pool_names({"w-1", "w-1"}), ElementsAre("w-1", "w-1"));
}

TEST(PoolNames, ASharedNumberStays) {
  EXPECT_THAT(pool_names({"http2-1", "http2-2"}), ElementsAre("http2-*", "http2-*"));
  EXPECT_THAT(pool_names({"pool-1-thread-1", "pool-2-thread-1"}),
              ElementsAre("pool-*-thread-1", "pool-*-thread-1"));
}

TEST(PoolNames, StarsInNamesAreNoWildcards) {
  EXPECT_THAT(pool_names({"a*", "a1", "a2"}), ElementsAre("a*", "a*", "a*"));
  EXPECT_THAT(pool_names({"a*", "a1"}), ElementsAre("a*", "a1"));
  EXPECT_TRUE(pool_names({}).empty());
}

}  // namespace
}  // namespace assay::target
