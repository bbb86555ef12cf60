#include "analysis/profile/counter_ratios.h"

#include <gmock/gmock.h>

namespace assay::analysis {
namespace {

using model::CounterId;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void set(model::Counts& counts, CounterId id, double value, double share = 1) {
  counts[static_cast<size_t>(id)] = {true, value, share, ""};
}

const CounterRatio* find(const std::vector<CounterRatio>& ratios, const std::string& id) {
  for (const CounterRatio& ratio : ratios) {
    if (ratio.id == id) return &ratio;
  }
  return nullptr;
}

TEST(CounterRatios, AreMadeOfWhatWasCounted) {
  model::Counts counts;
  set(counts, CounterId::cycles, 2e9, 0.75);
  set(counts, CounterId::instructions, 3e9, 0.75);
  set(counts, CounterId::branches, 5e8, 0.75);
  set(counts, CounterId::branch_misses, 1e7, 0.7);
  auto ratios = counter_ratios(counts);
  ASSERT_NE(find(ratios, "ipc"), nullptr);
  EXPECT_DOUBLE_EQ(find(ratios, "ipc")->value, 1.5);
  EXPECT_DOUBLE_EQ(find(ratios, "ipc")->counted_share, 0.75);
  EXPECT_DOUBLE_EQ(find(ratios, "branch_miss_share")->value, 0.02);
  EXPECT_DOUBLE_EQ(find(ratios, "branch_miss_share")->counted_share, 0.7);
  EXPECT_NEAR(find(ratios, "branch_mpki")->value, 3.333, 0.001);
  EXPECT_EQ(find(ratios, "llc_miss_share"), nullptr) << "not counted, not made up";
}

TEST(CounterRatios, NothingCountedNothingSaid) {
  EXPECT_THAT(counter_ratios({}), IsEmpty());
  model::Counts counts;
  set(counts, CounterId::cycles, 0);
  set(counts, CounterId::instructions, 0);
  EXPECT_THAT(counter_ratios(counts), IsEmpty());
}

// The counters of a document that people work by: 0.015 CPUs, interpreted as the server's nature.
TEST(CounterRatios, AnIdleServerIsCalledThat) {
  model::Counts counts;
  set(counts, CounterId::cpu_clock, 0.15e9);
  EXPECT_THAT(idle_remark(counts, 10), HasSubstr("idle server"));
  set(counts, CounterId::cpu_clock, 9e9);
  EXPECT_EQ(idle_remark(counts, 10), "");
  EXPECT_EQ(idle_remark({}, 10), "");
}

}  // namespace
}  // namespace assay::analysis
