#include "analysis/heap/heap_summary.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "analysis/analyse.h"
#include "analysis/heap/heap_leaks.h"
#include "analysis/profile/allocation_frames.h"
#include "analysis/testing/fake_run.h"

namespace assay::analysis {
namespace {

constexpr TimeNs kSecond = kNsPerSecond;

class HeapSummaryTest : public testing::Test {
 protected:
  HeapSummaryTest() {
    run_.edit().info.window_end_ns = 10 * kSecond;
    thread_ = run_.add_thread(run_.add_process(100, "/opt/server"), 100, "server");
  }
  HeapSummary summary() {
    CallTree tree(run_.contents());
    auto made =
        summarise_heap(run_, tree, std::vector<bool>(run_.contents().threads.size(), true), 200);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  // A program that allocates `count` times `size` bytes, seen through a sampler of this rate.
  void allocate(const std::string& function, int count, uint64_t size, uint64_t rate,
                TimeNs lifetime = INT64_MAX) {
    model::StackId stack = run_.stack({"main", function, "operator new(unsigned long)"});
    std::bernoulli_distribution taken(
        -std::expm1(-static_cast<double>(size) / static_cast<double>(rate)));
    for (int i = 0; i < count; ++i) {
      if (!taken(random_)) continue;
      TimeNs at = 10 * kSecond / count * i;
      bool freed = lifetime != INT64_MAX && at + lifetime < 10 * kSecond;
      run_.add_alloc(thread_, stack, at, size, rate, freed ? at + lifetime : INT64_MAX);
    }
  }
  static const HeapSite& site(const HeapSummary& heap, const std::string& function) {
    for (const HeapSite& one : heap.sites)
      if (one.function == function) return one;
    static const HeapSite kNone;
    ADD_FAILURE() << "no site " << function;
    return kNone;
  }

  FakeRun run_;
  model::ThreadId thread_;
  std::mt19937_64 random_{42};
};

TEST_F(HeapSummaryTest, SumsOfAnImportSayNothingOfTime) {
  run_.edit().info.backend = "import: pprof";
  model::StackId kept = run_.stack({"main", "keep", "malloc"}),
                 passed = run_.stack({"main", "pass", "malloc"});
  run_.add_heap_sum({thread_, kept, 1000, 10, 1000, 10, 0});
  run_.add_heap_sum({thread_, passed, 0, 0, 9000, 90, 0});
  run_.add_heap_sum({thread_, passed, 500, 1, 1000, 2, 0});
  HeapSummary heap = summary();
  EXPECT_FALSE(heap.timed);
  EXPECT_EQ(heap.live.bytes, 1500);
  EXPECT_EQ(heap.live.objects, 11);
  EXPECT_EQ(heap.allocated.bytes, 11000);
  EXPECT_EQ(heap.allocated.objects, 102);
  EXPECT_EQ(heap.live.bytes_error, 0) << "no rate is known";
  EXPECT_TRUE(heap.timeline.empty());
  EXPECT_TRUE(heap.marks.empty());
  EXPECT_EQ(site(heap, "pass").live.bytes, 500);
  EXPECT_EQ(site(heap, "pass").allocated.objects, 92);
  EXPECT_DOUBLE_EQ(site(heap, "pass").freed_share, 0.95);
  EXPECT_FALSE(site(heap, "keep").leaks);
  EXPECT_EQ(site(heap, "keep").frames.size(), 2u);
  EXPECT_EQ(heap.complete_share, 1);

  auto report = analyse(run_, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->run_kind, run::RunKind::imported_heap);
  EXPECT_TRUE(report->findings.empty()) << report->findings[0].id;
  EXPECT_TRUE(report->not_bottlenecks.empty());
  EXPECT_EQ(report->verdict.kind, VerdictKind::withheld);
  EXPECT_NE(report->verdict.sentence.find("heap"), std::string::npos) << report->verdict.sentence;
}

// Ten of the mean size, each taken with a chance of 1 − 1/e.
TEST_F(HeapSummaryTest, ErrorsOfSumsFollowFromTheirRate) {
  run_.add_heap_sum({thread_, run_.stack({"main"}), 10 * 1000, 10, 10 * 1000, 10, 1000});
  double chance = 1 - std::exp(-1.0), error = 1.96 * std::sqrt(10 * (1 - chance) / chance);
  HeapSummary heap = summary();
  EXPECT_NEAR(heap.live.objects_error, error, 1e-9);
  EXPECT_NEAR(heap.live.bytes_error, 1000 * error, 1e-6);
}

TEST_F(HeapSummaryTest, WhatAnImportDoesNotKnowIsSaid) {
  run_.edit().facts.push_back({"import", "heap_freed", "absent"});
  run_.add_heap_sum({thread_, run_.stack({"main", "keep"}), 1000, 10, 0, 0, 0});
  HeapSummary heap = summary();
  EXPECT_TRUE(heap.live_known);
  EXPECT_FALSE(heap.freed_known);
  EXPECT_EQ(site(heap, "keep").frames.front().function, "keep");
  EXPECT_EQ(heap.complete_share, 1);
}

TEST_F(HeapSummaryTest, ARunWithoutAllocationsHasNone) {
  EXPECT_FALSE(summary().present);
}

// 40 sums, each with a 95 % interval: more than 6 outside have a chance of 0.4 %. The seed is
// fixed.
TEST_F(HeapSummaryTest, SumsAreUnbiasedAndTheirErrorsHonest) {
  int outside = 0, sums = 0;
  for (int round = 0; round < 10; ++round) {
    FakeRun fresh;
    fresh.edit().info.window_end_ns = 10 * kSecond;
    run_ = fresh;
    thread_ = run_.add_thread(run_.add_process(100, "/opt/server"), 100, "server");
    allocate("small", 200'000, 64, 1 << 16);
    allocate("large", 300, 300'000, 1 << 16);
    HeapSummary heap = summary();
    for (auto [name, count, size] :
         {std::tuple{"small", 200'000.0, 64.0}, std::tuple{"large", 300.0, 300'000.0}}) {
      const HeapAmount& got = site(heap, name).allocated;
      outside += std::abs(got.objects - count) > got.objects_error + 1e-6;
      outside += std::abs(got.bytes - count * size) > got.bytes_error + 1e-6;
      sums += 2;
      EXPECT_NEAR(got.objects, count, 0.5 * count);
    }
  }
  EXPECT_EQ(sums, 40);
  EXPECT_LE(outside, 6);
}

TEST_F(HeapSummaryTest, MixedSizesAtOneSiteAreWeighedOneByOne) {
  allocate("mixed", 100'000, 32, 1 << 18);
  allocate("mixed", 100, 1 << 20, 1 << 18);
  const HeapSummary heap = summary();
  const HeapAmount& got = site(heap, "mixed").allocated;
  EXPECT_NEAR(got.objects, 100'100, got.objects_error * 1.5);
  EXPECT_GT(got.objects, 40'000) << "the mean size of the site would give a tenth";
}

TEST_F(HeapSummaryTest, LiveIsWhatWasNotFreed) {
  allocate("kept", 1000, 100'000, 1000);
  allocate("freed", 1000, 100'000, 1000, kSecond / 100);
  const HeapSummary heap = summary();
  EXPECT_NEAR(heap.live.bytes, 1e8, 1e6);
  EXPECT_NEAR(heap.allocated.bytes, 2e8, 1e6);
  EXPECT_NEAR(heap.peak_bytes, 1e8, 1e6);
  EXPECT_NEAR(site(heap, "freed").freed_share, 1, 0.01);
  EXPECT_EQ(site(heap, "freed").median_lifetime_ns, kSecond / 100);
  EXPECT_EQ(site(heap, "kept").freed_share, 0);
  EXPECT_EQ(heap.rate_bytes, 1000u);
}

TEST_F(HeapSummaryTest, ALeakGrowsAndKeepsWhatACacheDoesNot) {
  allocate("leaks", 1000, 100'000, 1000);
  // A cache that fills in the first second and then stays.
  model::StackId cache = run_.stack({"main", "caches", "malloc"});
  for (int i = 0; i < 300; ++i) run_.add_alloc(thread_, cache, kSecond / 300 * i, 100'000, 1000);
  // A queue: everything is freed after a second.
  allocate("queues", 1000, 100'000, 1000, kSecond);
  const HeapSummary heap = summary();
  EXPECT_TRUE(site(heap, "leaks").leaks);
  EXPECT_FALSE(site(heap, "caches").leaks);
  EXPECT_FALSE(site(heap, "queues").leaks);
  EXPECT_NEAR(site(heap, "leaks").old.bytes, 0.75e8, 2e6) << "the youngest quarter is left out";
  EXPECT_NEAR(site(heap, "leaks").growth_bytes_per_s, 1e7, 1e6);
}

TEST_F(HeapSummaryTest, FindingsNameTheLine) {
  allocate("leaks", 1000, 100'000, 1000);
  allocate("churns", 100'000, 20'000, 100'000, 1000);
  auto report = analyse(run_, {});
  ASSERT_TRUE(report);
  std::map<std::string, std::string> where;
  for (const Finding& finding : report->findings) where[finding.id] = finding.where.symbol;
  EXPECT_EQ(where["heap-leak"], "leaks");
  EXPECT_EQ(where["heap-churn"], "churns");
}

// As an interpreter's: all goes through one function, which frees most of what it takes.
TEST_F(HeapSummaryTest, GrowthOfASharedSiteNamesTheStackThatHolds) {
  model::StackId kept = run_.stack({"main", "keeps", "object_malloc", "malloc"}),
                 freed = run_.stack({"main", "frees", "object_malloc", "malloc"});
  for (int i = 0; i < 1000; ++i) {
    TimeNs at = kSecond / 100 * i;
    run_.add_alloc(thread_, kept, at, 100'000, 1000);
    run_.add_alloc(thread_, freed, at, 900'000, 2000, at + kSecond / 1000);
  }
  auto report = analyse(run_, {});
  ASSERT_TRUE(report);
  const HeapSite& shared = site(report->heap, "object_malloc");
  EXPECT_FALSE(shared.leaks);
  ASSERT_GE(shared.frames.size(), 2u);
  EXPECT_EQ(shared.frames[1].function, "keeps");
  EXPECT_NEAR(report->heap.mean_rate_bytes, 0.1 * 1000 + 0.9 * 2000, 1);
  EXPECT_EQ(judge_leaks(*report, {}).answer, LeakAnswer::suspected);
}

TEST_F(HeapSummaryTest, AQuietHeapHasNoFinding) {
  allocate("queues", 1000, 10'000, 1000, kSecond / 10);
  auto report = analyse(run_, {});
  ASSERT_TRUE(report);
  for (const Finding& finding : report->findings)
    EXPECT_NE(finding.cause, Cause::memory) << finding.id;
}

FrameText frame(const std::string& name) {
  FrameText text;
  text.function = name;
  return text;
}

TEST(AllocationFrames, CutsTheMachineryAndKeepsTheProgram) {
  std::vector<FrameText> stack{frame("operator new(unsigned long)"),
                               frame("std::__new_allocator<char>::allocate(unsigned long)"),
                               frame("std::vector<char>::reserve(unsigned long)"),
                               frame("kv::Store::put(int)"), frame("main")};
  EXPECT_EQ(frames_to_cut(stack), 3u);
  EXPECT_EQ(frames_to_cut(std::vector{frame("main")}), 0u);
  EXPECT_EQ(frames_to_cut(std::vector{frame("malloc"), frame("main")}), 1u);
  // Nothing of the program follows: what is left is shown.
  EXPECT_EQ(frames_to_cut(std::vector{frame("malloc"), frame("std::locale::init()")}), 1u);
  EXPECT_EQ(frames_to_cut(std::vector{frame("malloc")}), 0u);
  EXPECT_EQ(frames_to_cut({}), 0u);
  // An allocator that profiles itself, stripped.
  FrameText inside = frame("libjemalloc.so.2!fn_a2630");
  inside.module = "libjemalloc.so.2";
  EXPECT_EQ(frames_to_cut(std::vector{inside, inside, frame("malloc"), frame("main")}), 3u);
}

}  // namespace
}  // namespace assay::analysis
