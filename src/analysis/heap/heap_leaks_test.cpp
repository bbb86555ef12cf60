#include "analysis/heap/heap_leaks.h"

#include <gmock/gmock.h>

namespace assay::analysis {
namespace {

using testing::HasSubstr;

constexpr uint64_t kRate = 512 << 10;

// A heap that was sampled for five seconds, with one site that frees what it takes.
Report churning(double rate) {
  Report report;
  HeapSummary& heap = report.heap;
  heap.present = true;
  heap.window_ns = 5 * kNsPerSecond;
  heap.young_ns = heap.window_ns / 4;
  heap.mean_rate_bytes = rate;
  heap.allocated.bytes = 15e9;
  heap.allocated.samples = static_cast<uint64_t>(15e9 / rate);
  HeapSite site;
  site.allocated = heap.allocated;
  site.freed_share = 1;
  heap.sites.push_back(site);
  return report;
}

// One more that may be a leak, of which there are so many samples that are old.
void add_growing(Report& report, uint64_t samples) {
  HeapSite site;
  site.old.samples = samples;
  site.old.bytes = report.heap.mean_rate_bytes * static_cast<double>(samples);
  site.growth_bytes_per_s = 1;
  report.heap.sites.push_back(site);
}

TEST(HeapLeaks, NoneWhereALargeOneWouldHaveBeenSeen) {
  LeakVerdict verdict = judge_leaks(churning(kRate), {kRate, false});
  EXPECT_EQ(verdict.answer, LeakAnswer::none) << verdict.reason;
}

TEST(HeapLeaks, CannotBeToldAtARateThatHidesALargeOne) {
  Report report = churning(8 << 20);
  EXPECT_GT(hidden_leak_bytes_per_s(report.heap, kRate), 6e6);
  LeakVerdict verdict = judge_leaks(report, {kRate, false});
  EXPECT_EQ(verdict.answer, LeakAnswer::unknown);
  EXPECT_THAT(verdict.reason, HasSubstr("raised from"));
  EXPECT_THAT(verdict.remedy, HasSubstr("profile for")) << "a finer --rate would not be kept to";
  EXPECT_THAT(verdict.remedy, testing::Not(HasSubstr("--rate")));
  EXPECT_THAT(judge_leaks(report, {8 << 20, false}).remedy, HasSubstr("--rate 1024k"));
}

TEST(HeapLeaks, CannotBeToldOfGrowthOfAFewSamples) {
  Report report = churning(kRate);
  add_growing(report, 15);
  EXPECT_EQ(judge_leaks(report, {kRate, false}).answer, LeakAnswer::unknown);
  report = churning(kRate);
  add_growing(report, 200);  // enough of them to be judged as what they are
  EXPECT_EQ(judge_leaks(report, {kRate, false}).answer, LeakAnswer::none);
}

TEST(HeapLeaks, CannotBeToldWhereAllOfItMayBeGrowing) {
  Report report = churning(kRate);
  for (int i = 0; i < 8; ++i) report.heap.timeline.push_back({i, i * 0.5e6, 1.0 * i});
  report.heap.live.bytes = 3.5e6;
  report.heap.live.bytes_error = 2.6e6;
  report.heap.live.samples = 7;
  LeakVerdict verdict = judge_leaks(report, {kRate, false});
  EXPECT_EQ(verdict.answer, LeakAnswer::unknown);
  EXPECT_THAT(verdict.reason, HasSubstr("7 samples"));
  for (HeapPoint& point : report.heap.timeline) point.live_bytes = 3.5e6;
  EXPECT_EQ(judge_leaks(report, {kRate, false}).answer, LeakAnswer::none);
}

TEST(HeapLeaks, NoMoreThanWasAllocatedCanLeak) {
  Report report = churning(8 << 20);
  report.heap.allocated = {};
  report.heap.allocated.bytes = 1e6;
  report.heap.allocated.samples = 1;
  EXPECT_EQ(judge_leaks(report, {kRate, false}).answer, LeakAnswer::none);
}

TEST(HeapLeaks, CannotBeToldWhereNothingWasSampled) {
  Report report = churning(kRate);
  report.heap.mean_rate_bytes = 0;
  report.heap.allocated = {};
  report.heap.sites.clear();
  EXPECT_EQ(judge_leaks(report, {kRate, false}).answer, LeakAnswer::unknown);
  EXPECT_EQ(judge_leaks(report, {16 << 10, false}).answer, LeakAnswer::none)
      << "so little was allocated that nothing can leak";
}

TEST(HeapLeaks, CannotBeToldOfATargetThatEnded) {
  LeakVerdict verdict = judge_leaks(churning(kRate), {kRate, true});
  EXPECT_EQ(verdict.answer, LeakAnswer::unknown);
  EXPECT_THAT(verdict.reason, HasSubstr("the target ended"));
}

TEST(HeapLeaks, AreSuspectedBySiteAndByGrowthOfAll) {
  Report report = churning(kRate);
  report.findings.emplace_back();
  report.findings.back().id = "heap-growth";
  EXPECT_EQ(judge_leaks(report, {kRate, true}).answer, LeakAnswer::suspected);
  report.findings.clear();
  report.heap.sites.front().leaks = true;
  EXPECT_EQ(judge_leaks(report, {kRate, true}).answer, LeakAnswer::suspected);
}

}  // namespace
}  // namespace assay::analysis
