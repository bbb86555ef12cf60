#include "analysis/compare/heap_changes.h"

#include <gmock/gmock.h>

#include "analysis/compare/statistics/drawn_runs.h"
#include "base/sanitized.h"

namespace assay::analysis {
namespace {

using ::testing::HasSubstr;

// Runs of a server that allocates, by function: bytes of one object, objects per run, kept?
struct Allocates {
  std::string function;
  uint64_t size;
  int objects;
  bool kept;
};

RunValues allocating_run(const std::vector<Allocates>& sites, UnionTree& tree,
                         std::mt19937_64& random, const std::string& backend = "perf_event") {
  constexpr int64_t kWindow = 10 * kNsPerSecond;
  constexpr uint64_t kRate = 4096;
  FakeRun fake;
  fake.edit().info.window_end_ns = kWindow;
  fake.edit().info.sample_period_ns = kNsPerMs;
  fake.edit().info.backend = backend;
  auto thread = fake.add_thread(fake.add_process(7, "/opt/server"), 7, "server");
  for (const Allocates& site : sites) {
    auto stack = fake.stack({"main", site.function, "operator new(unsigned long)"});
    double chance = -std::expm1(-static_cast<double>(site.size) / kRate);
    std::bernoulli_distribution taken(chance);
    for (int i = 0; i < site.objects; ++i) {
      if (!taken(random)) continue;
      TimeNs at = kWindow / site.objects * i;
      fake.add_alloc(thread, stack, at, site.size, kRate, site.kept ? INT64_MAX : at + 1000);
    }
  }
  fake.add_series(model::SeriesScope::load, 0, "requests", {{0, 0}, {kWindow, 1000}});
  auto values = read_run_values(fake, "heap.assay", tree);
  EXPECT_TRUE(values) << values.error().what;
  return *values;
}

Comparison heap_comparison(const std::vector<Allocates>& base, const std::vector<Allocates>& next,
                           int runs, uint64_t seed) {
  UnionTree tree;
  std::mt19937_64 random(seed);
  std::vector<RunValues> a, b;
  for (int i = 0; i < runs; ++i) {
    a.push_back(allocating_run(base, tree, random));
    b.push_back(allocating_run(next, tree, random));
  }
  auto out = compare(tree, std::move(a), std::move(b), {});
  EXPECT_TRUE(out);
  return *out;
}

const HeapChange* heap_change_of(const Comparison& comparison, const std::string& function) {
  for (const HeapChange& change : comparison.heap_changes) {
    if (change.function == function) return &change;
  }
  return nullptr;
}

const std::vector<Allocates> kHeap{
    {"parse", 256, 20'000, false}, {"cache", 1024, 3'000, true}, {"render", 4096, 2'000, false}};

TEST(CompareHeap, SitesThatAllocateOrHoldMoreAreNamed) {
  std::vector<Allocates> next = kHeap;
  next[0].objects *= 2;                         // twice as many of the same size
  next[1].objects = next[1].objects * 3 / 2;    // more is kept
  next.push_back({"log", 512, 10'000, false});  // and a new one
  Comparison out = heap_comparison(kHeap, next, 6, 1);
  EXPECT_TRUE(out.has_heap);
  const HeapChange* parse = heap_change_of(out, "parse");
  ASSERT_NE(parse, nullptr);
  EXPECT_EQ(parse->allocated.outcome, Outcome::higher);
  EXPECT_EQ(parse->objects.outcome, Outcome::higher);
  EXPECT_NEAR(parse->objects.ratio, 2, 0.15);
  EXPECT_NEAR(parse->objects.base, 20, 1) << "per request";
  EXPECT_NEAR(parse->allocated.base, 20 * 256, 300);
  const HeapChange* cache = heap_change_of(out, "cache");
  ASSERT_NE(cache, nullptr);
  EXPECT_EQ(cache->live.outcome, Outcome::higher);
  EXPECT_NEAR(cache->live.ratio, 1.5, 0.1);
  ASSERT_NE(heap_change_of(out, "log"), nullptr);
  EXPECT_EQ(heap_change_of(out, "log")->kind, ChangeKind::appeared);
  EXPECT_EQ(heap_change_of(out, "render"), nullptr);
  EXPECT_EQ(measure_of(out, "heap_live").outcome, Outcome::higher);
  EXPECT_EQ(measure_of(out, "heap_allocated_per_request").outcome, Outcome::higher);
}

TEST(CompareHeap, NothingBetweenEqualSides) {
  constexpr uint64_t kRounds = kSanitized ? 8 : 40;
  uint64_t alarms = 0;
  for (uint64_t seed = 100; seed < 100 + kRounds; ++seed)
    alarms += !heap_comparison(kHeap, kHeap, 5, seed).heap_changes.empty();
  EXPECT_LE(alarms, 2) << "5 % of 40; more than 2 of 8 would be chance in one of 170 series";
}

TEST(CompareHeap, OneRunASideIsDescriptive) {
  std::vector<Allocates> next = kHeap;
  next[0].objects *= 2;
  Comparison out = heap_comparison(kHeap, next, 1, 3);
  const HeapChange* parse = heap_change_of(out, "parse");
  ASSERT_NE(parse, nullptr);
  EXPECT_EQ(parse->objects.outcome, Outcome::descriptive);
  EXPECT_EQ(heap_change_of(out, "render"), nullptr) << "within the sampler's error";
}

TEST(CompareHeap, IsLeftOutWhereARunHasNone) {
  UnionTree tree;
  std::mt19937_64 random(4);
  RunValues with_heap = allocating_run(kHeap, tree, random);
  RunValues without = Drawn(18).run(kServer, tree);
  auto out = compare(tree, {with_heap}, {without}, {});
  ASSERT_TRUE(out);
  EXPECT_FALSE(out->has_heap);
  EXPECT_THAT(all_warnings(*out), HasSubstr("sampled in 1 of 2 runs only"));
  EXPECT_TRUE(out->heap_changes.empty());
}

RunValues imported_run(int64_t cache_bytes, bool knows_freed, UnionTree& tree) {
  FakeRun fake;
  fake.edit().info.backend = "import: pprof";
  if (!knows_freed) fake.edit().facts.push_back({"import", "heap_freed", "absent"});
  auto thread = fake.add_thread(fake.add_process(0, "server"), 0, "server");
  int64_t passed = knows_freed ? 50'000 : 0;
  fake.add_heap_sum({thread, fake.stack({"main", "cache"}), cache_bytes, 10, passed, 10, 0});
  fake.add_heap_sum({thread, fake.stack({"main", "parse"}), 1'000, 10, passed, 100, 0});
  auto values = read_run_values(fake, "heap.assay", tree);
  EXPECT_TRUE(values) << values.error().what;
  return *values;
}

TEST(CompareHeap, ImportedProfilesAreComparedAsTheyAre) {
  UnionTree tree;
  RunValues base = imported_run(10'000, true, tree), next = imported_run(30'000, true, tree);
  auto out = compare(tree, {base}, {next}, {});
  ASSERT_TRUE(out) << out.error().what;
  EXPECT_FALSE(out->heap_timed);
  const HeapChange* cache = heap_change_of(*out, "cache");
  ASSERT_NE(cache, nullptr);
  EXPECT_NEAR(cache->live.base, 10'000, 1e-6);
  EXPECT_NEAR(cache->live.ratio, 3, 1e-9);
  EXPECT_NEAR(cache->allocated.base, 50'000, 1e-6) << "not by a time that nobody knows";
  EXPECT_EQ(heap_change_of(*out, "parse"), nullptr);
  EXPECT_NEAR(measure_of(*out, "heap_allocated").base, 100'000.0 / (1024 * 1024), 1e-9);
  for (const Measure& measure : out->measures) EXPECT_NE(measure.id, "elapsed");
}

TEST(CompareHeap, WhatOneSideDoesNotKnowIsNotCompared) {
  UnionTree tree;
  RunValues base = imported_run(10'000, true, tree), next = imported_run(10'000, false, tree);
  auto out = compare(tree, {base}, {next}, {});
  ASSERT_TRUE(out) << out.error().what;
  EXPECT_EQ(heap_change_of(*out, "parse"), nullptr) << "its allocations did not vanish";
  for (const Measure& measure : out->measures) EXPECT_NE(measure.id, "heap_allocated");
}

TEST(CompareHeap, ProfilesOfTheHeapAloneHaveASentence) {
  Comparison out = heap_comparison(kHeap, kHeap, 3, 5);
  EXPECT_THAT(out.sentence, HasSubstr("heap: allocated per request"));
}

// Go's heap as pprof says which file a function is in, as text it does not.
TEST(CompareHeap, SitesOfUnknownModulesMatchByName) {
  for (bool reversed : {false, true}) {
    UnionTree tree;
    auto run = [&](const std::string& module) {
      FakeRun fake;
      fake.edit().info = {};
      fake.edit().info.backend = "import: pprof";
      auto thread = fake.add_thread(fake.add_process(0, ""), 0, "server");
      for (const char* function : {"main.keep", "main.work"}) {
        auto stack = fake.stack({module + ":main.main", module + ":" + function});
        fake.add_heap_sum({thread, stack, 3'000'000, 30, 3'000'000, 30, 30});
      }
      return *read_run_values(fake, module, tree);
    };
    RunValues known = run("gosrv"), unknown = run("[unknown]");
    auto out =
        reversed ? compare(tree, {unknown}, {known}, {}) : compare(tree, {known}, {unknown}, {});
    ASSERT_TRUE(out);
    EXPECT_TRUE(out->heap_changes.empty()) << out->heap_changes.front().function;
    EXPECT_EQ(heap_changes(*out, 10).tested, 2U);
  }
}

}  // namespace
}  // namespace assay::analysis
