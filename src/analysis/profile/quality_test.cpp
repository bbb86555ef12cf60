#include "analysis/profile/quality.h"

#include <gtest/gtest.h>

#include "analysis/analyse.h"
#include "analysis/testing/fake_run.h"

namespace assay::analysis {
namespace {

constexpr int64_t kMs = kNsPerMs;

Quality quality_of(const FakeRun& run) {
  auto report = analyse(run, {});
  EXPECT_TRUE(report) << report.error().text();
  return report ? report->quality : Quality{};
}

TEST(Quality, SharesAreWeightedByTime) {
  FakeRun run;
  auto thread = run.add_thread(run.add_process(1, "/opt/server"), 1, "main");
  run.add_samples(thread, run.stack({"main", "a"}), 1, 60 * kMs);
  run.add_samples(thread, run.stack({"!:8", "a"}), 1, 20 * kMs);
  run.add_samples(thread, run.stack({"!:2", "a"}), 1, 10 * kMs);
  run.add_samples(thread, {}, 1, 10 * kMs);
  run.add_wait(thread, run.stack({"!:6"}), 0, 300 * kMs);
  run.add_wait(thread, run.stack({"main", "k:ep_poll"}), 400 * kMs, 100 * kMs);
  Quality q = quality_of(run);
  EXPECT_DOUBLE_EQ(q.on_cpu.complete, 0.6);
  EXPECT_DOUBLE_EQ(q.on_cpu.by_frame_pointers, 0.2);
  EXPECT_DOUBLE_EQ(q.on_cpu.truncated, 0.1);
  EXPECT_DOUBLE_EQ(q.on_cpu.none, 0.1);
  EXPECT_DOUBLE_EQ(q.off_cpu.none, 0.75);
  EXPECT_DOUBLE_EQ(q.off_cpu.complete, 0.25);
  EXPECT_EQ(q.waits_without_stack, 1u);
}

TEST(Quality, RateLossAndCost) {
  FakeRun run;
  auto thread = run.add_thread(run.add_process(1, "/opt/server"), 1, "main");
  run.add_samples(thread, run.stack({"main"}), 50, 9 * kMs);
  run.add_wait(thread, run.stack({"main", "k:ep_poll"}), 500 * kMs, 500 * kMs);
  run.edit().losses = {{model::LossKind::ring_records, 0, 5, 40},
                       {model::LossKind::dropped_samples, 1, 5, 9},
                       {model::LossKind::dropped_stacks, 1, 5, 1000},
                       {static_cast<model::LossKind>(200), 1, 5, 1000}};
  run.edit().info.finished = false;
  run.add_series(model::SeriesScope::self, 0, "cpu", {{0, 5}, {10, 26}});
  run.add_series(model::SeriesScope::self, 0, "counters_cpu", {{0, 1}, {10, 2}});
  run.add_series(model::SeriesScope::self, 0, "rss", {{0, 10}, {5, 30}, {10, 20}});
  Quality q = quality_of(run);
  EXPECT_DOUBLE_EQ(q.hz, 100);  // 50 samples in half a second of running
  EXPECT_DOUBLE_EQ(q.hz_asked, 100);
  EXPECT_DOUBLE_EQ(q.sampled_share, 0.9);
  EXPECT_EQ(q.lost_records, 49u);
  EXPECT_DOUBLE_EQ(q.lost_share, 0.49);
  EXPECT_EQ(q.lost[2], 1000u);
  EXPECT_FALSE(q.finished);
  EXPECT_EQ(q.own_cost.cpu_ns, 21);
  EXPECT_EQ(q.own_cost.peak_rss_bytes, 30);
}

TEST(Quality, LimitsAreSaidAndOnlyWhereThereAreSome) {
  Quality good;
  good.samples = 10'000;
  good.waits = 10'000;
  good.sampled_share = 1.01;
  good.finished = true;
  good.end_reason = "time";
  good.on_cpu.time_ns = good.off_cpu.time_ns = 1;
  good.on_cpu.complete = good.off_cpu.complete = 1;
  good.accounting.threads_checked = 4;
  good.accounting.error_share = 0.019;
  EXPECT_TRUE(limits_of(good).empty());
  auto topic = [&](auto&& spoil) {
    Quality bad = good;
    spoil(bad);
    auto limits = limits_of(bad);
    EXPECT_EQ(limits.size(), 1u);
    return limits.empty() ? "" : limits[0].topic;
  };
  EXPECT_EQ(topic([](Quality& q) { q.finished = false; }), "ending");
  EXPECT_EQ(topic([](Quality& q) { q.end_reason = "interrupted"; }), "ending");
  EXPECT_EQ(topic([](Quality& q) { q.lost_share = 0.02; }), "loss");
  EXPECT_EQ(topic([](Quality& q) { q.lost[2] = 500; }), "loss");
  EXPECT_EQ(topic([](Quality& q) { q.lost[3] = 1; }), "loss");
  EXPECT_EQ(topic([](Quality& q) { q.lost[6] = 1; }), "threads");
  EXPECT_EQ(topic([](Quality& q) { q.accounting.threads_unseen = 1; }), "threads");
  EXPECT_EQ(topic([](Quality& q) { q.accounting.error_share = 0.03; }), "accounting");
  EXPECT_EQ(topic([](Quality& q) { q.accounting.overlapping_waits = 1; }), "accounting");
  EXPECT_EQ(topic([](Quality& q) { q.sampled_share = 0.9; }), "sampling");
  EXPECT_EQ(topic([](Quality& q) { q.samples = 50; }), "sampling");
  EXPECT_EQ(topic([](Quality& q) { q.on_cpu.truncated = 0.06; }), "stacks");
  EXPECT_EQ(topic([](Quality& q) { q.off_cpu.by_frame_pointers = 0.06; }), "stacks");
  EXPECT_EQ(topic([](Quality& q) { q.off_cpu.none = 0.06; }), "stacks");
  EXPECT_EQ(topic([](Quality& q) { q.on_cpu.unresolved = 0.2; }), "symbols");
}

TEST(Quality, AnEmptyRunHasNoShares) {
  FakeRun run;
  run.edit().info.window_end_ns = 0;
  run.edit().stacks.clear();
  Quality q = quality_of(run);
  EXPECT_EQ(q.samples, 0u);
  EXPECT_EQ(q.on_cpu.time_ns, 0);
  EXPECT_EQ(q.hz, 0);
  EXPECT_EQ(q.lost_share, 0);
  EXPECT_FALSE(q.own_cost.cpu_ns);
}

}  // namespace
}  // namespace assay::analysis
