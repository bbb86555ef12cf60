#include "analysis/profile/top_down.h"

#include <gmock/gmock.h>

namespace assay::analysis {
namespace {

using model::TopDownCounts;
using model::TopDownMethod;

double share_of(const std::vector<TopDownShare>& shares, std::string_view id) {
  for (const TopDownShare& share : shares) {
    if (share.id == id) return share.share;
  }
  ADD_FAILURE() << "no share " << id;
  return -1;
}

bool has(const std::vector<TopDownShare>& shares, std::string_view id) {
  return std::ranges::any_of(shares, [&](const TopDownShare& share) { return share.id == id; });
}

// Counts of a Zen 4 as `perf stat -M PipelineL1` printed them (a published benchmark log), with the
// percentages that perf computed from them: 81.0, 2.0, 2.1, 14.9, 0.0.
TEST(TopDown, AgreesWithPerfOnARecordedZen4) {
  TopDownCounts counts;
  counts.method = TopDownMethod::zen;
  counts.slots_per_cycle = 6;
  counts.values = {{"ls_not_halted_cyc", 44'116'386'583.0},
                   {"de_src_op_disp.all", 219'730'483'625.0},
                   {"ex_ret_ops", 214'351'198'437.0},
                   {"de_no_dispatch_per_slot.no_ops_from_frontend", 5'543'991'665.0},
                   {"de_no_dispatch_per_slot.backend_stalls", 39'403'115'284.0},
                   {"de_no_dispatch_per_slot.smt_contention", 0}};
  auto shares = top_down(counts);
  EXPECT_NEAR(share_of(shares, "retiring"), 0.810, 0.0005);
  EXPECT_NEAR(share_of(shares, "bad_speculation"), 0.020, 0.0005);
  EXPECT_NEAR(share_of(shares, "frontend_bound"), 0.021, 0.0005);
  EXPECT_NEAR(share_of(shares, "backend_bound"), 0.149, 0.0005);
  EXPECT_FALSE(has(shares, "backend_memory")) << "nothing for level 2 was counted";
  EXPECT_EQ(top_down_remark(shares), "81 % of the issue slots: useful work");
}

TEST(TopDown, ZenLevel2DividesByWhatRetirementWaitedFor) {
  TopDownCounts counts;
  counts.method = TopDownMethod::zen;
  counts.slots_per_cycle = 8;
  counts.values = {{"ls_not_halted_cyc", 1000},
                   {"de_src_op_disp.all", 3000},
                   {"ex_ret_ops", 2600},
                   {"de_no_dispatch_per_slot.no_ops_from_frontend", 1000},
                   {"de_no_dispatch_per_slot.backend_stalls", 4000},
                   {"ex_no_retire.load_not_complete", 300},
                   {"ex_no_retire.not_complete", 400},
                   {"ex_ret_brn_misp", 9},
                   {"resyncs_or_nc_redirects", 1}};
  auto shares = top_down(counts);
  EXPECT_DOUBLE_EQ(share_of(shares, "backend_bound"), 0.5);
  EXPECT_DOUBLE_EQ(share_of(shares, "backend_memory"), 0.375);
  EXPECT_DOUBLE_EQ(share_of(shares, "backend_core"), 0.125);
  EXPECT_NEAR(share_of(shares, "bad_speculation_branches"), 0.045, 1e-12);
}

TEST(TopDown, IntelMetricsAreSharesOfTheirSum) {
  TopDownCounts counts;
  counts.method = TopDownMethod::intel_metrics;
  counts.values = {{"slots", 1000},           {"topdown-retiring", 400},
                   {"topdown-bad-spec", 100}, {"topdown-fe-bound", 200},
                   {"topdown-be-bound", 300}, {"topdown-mem-bound", 210}};
  auto shares = top_down(counts);
  EXPECT_DOUBLE_EQ(share_of(shares, "retiring"), 0.4);
  EXPECT_DOUBLE_EQ(share_of(shares, "backend_memory"), 0.21);
  EXPECT_NEAR(share_of(shares, "backend_core"), 0.09, 1e-12);
  EXPECT_FALSE(has(shares, "frontend_latency"));
  double sum = 0;
  for (const TopDownShare& share : shares) sum += share.level == 1 ? share.share : 0;
  EXPECT_DOUBLE_EQ(sum, 1);
}

TEST(TopDown, OlderIntelFromBubbles) {
  TopDownCounts counts;
  counts.method = TopDownMethod::intel_slots;
  counts.values = {{"topdown-total-slots", 4000},
                   {"topdown-slots-issued", 1500},
                   {"topdown-slots-retired", 1200},
                   {"topdown-fetch-bubbles", 800},
                   {"topdown-recovery-bubbles", 100}};
  auto shares = top_down(counts);
  EXPECT_DOUBLE_EQ(share_of(shares, "retiring"), 0.3);
  EXPECT_DOUBLE_EQ(share_of(shares, "frontend_bound"), 0.2);
  EXPECT_DOUBLE_EQ(share_of(shares, "bad_speculation"), 0.1);
  EXPECT_NEAR(share_of(shares, "backend_bound"), 0.4, 1e-12);
}

TEST(TopDown, NothingCountedIsNothingSaid) {
  EXPECT_TRUE(top_down({}).empty());
  TopDownCounts counts;
  counts.method = TopDownMethod::zen;
  counts.slots_per_cycle = 6;
  EXPECT_TRUE(top_down(counts).empty());
  EXPECT_EQ(top_down_remark({}), "");
}

}  // namespace
}  // namespace assay::analysis
