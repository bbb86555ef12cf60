#include "os/machine/cpu_watch.h"

#include <gtest/gtest.h>

namespace assay::os {
namespace {

TEST(CpuWatch, AUeventNamesTheCpu) {
  using namespace std::string_view_literals;
  EXPECT_EQ(cpu_change_of("online@/devices/system/cpu/cpu1\0ACTION=online\0"sv),
            (CpuChange{1, true}));
  EXPECT_EQ(cpu_change_of("offline@/devices/system/cpu/cpu127"), (CpuChange{127, false}));
  for (std::string_view other :
       {"add@/devices/system/cpu/cpu1", "online@/devices/system/memory/memory1",
        "online@/devices/system/cpu/cpu", "online@/devices/system/cpu/cpu1x",
        "online@/devices/system/cpu/cpu-1", ""})
    EXPECT_EQ(cpu_change_of(other).cpu, -1) << other;
}

TEST(CpuWatch, ListsAreCompared) {
  std::set<int> online{0, 1, 2};
  EXPECT_EQ(cpu_changes(online, {}, {0, 2, 3}), (std::vector<CpuChange>{{1, false}, {3, true}}));
  EXPECT_EQ(online, (std::set{0, 2, 3}));
  EXPECT_TRUE(cpu_changes(online, {}, online).empty());
}

TEST(CpuWatch, OffAndOnBetweenTwoLooksIsTold) {
  std::set<int> online{0, 1};
  EXPECT_EQ(cpu_changes(online, {{1, false}, {1, true}}, {0, 1}),
            (std::vector<CpuChange>{{1, false}, {1, true}}));
}

TEST(CpuWatch, WhatTheListToldBeforeTheKernelDidCountsOnce) {
  std::set<int> online{0, 1};
  EXPECT_EQ(cpu_changes(online, {}, {0}).size(), 1u);
  EXPECT_TRUE(cpu_changes(online, {{1, false}}, {0}).empty());
  EXPECT_EQ(cpu_changes(online, {}, {0, 1}).size(), 1u);
  EXPECT_TRUE(cpu_changes(online, {{1, true}}, {0, 1}).empty());
}

TEST(CpuWatch, NothingHasChangedHere) {
  EXPECT_TRUE(CpuWatch::open()->changes().empty());
}

}  // namespace
}  // namespace assay::os
