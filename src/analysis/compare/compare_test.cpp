#include "analysis/compare/compare.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "analysis/compare/comparable_name.h"
#include "analysis/fake_run.h"

namespace assay::analysis {
namespace {

using ::testing::HasSubstr;

// What a request costs: CPU ns by path, root first.
using Costs = std::map<std::vector<std::string>, double>;

const Costs kServer{{{"main", "serve", "parse"}, 20'000},
                    {{"main", "serve", "lookup"}, 30'000},
                    {{"main", "serve", "render", "escape"}, 25'000},
                    {{"main", "serve", "render", "join"}, 15'000},
                    {{"main", "serve"}, 10'000}};

// Draws runs of a server: each costs a few percent more or less as a whole and function by
// function, as real runs do, and is seen through Poisson-distributed samples.
class Drawn {
 public:
  // `machine`: by how much the machine's speed differs between runs.
  explicit Drawn(uint64_t seed, double machine = 0.02) : random_(seed), machine_(machine) {}

  RunValues run(const Costs& costs, UnionTree& tree, double requests = 10'000) {
    constexpr int64_t kWindow = 10 * kNsPerSecond;
    constexpr int64_t kPeriod = kNsPerMs / 4;
    FakeRun fake;
    fake.edit().info.window_end_ns = kWindow;
    fake.edit().info.sample_period_ns = kPeriod;
    fake.edit().info.backend = "perf_event";
    auto process = fake.add_process(7, "/opt/server");
    auto thread = fake.add_thread(process, 7, "server");
    std::normal_distribution<double> between(0, 0.02);
    double run_factor = std::exp(std::normal_distribution<double>(0, machine_)(random_));
    int64_t ran = 0;
    for (const auto& [path, ns] : costs) {
      double time = ns * requests * run_factor * std::exp(between(random_));
      auto samples = static_cast<int>(std::poisson_distribution<int>(time / kPeriod)(random_));
      fake.add_samples(thread, fake.stack(path), samples, kPeriod);
      ran += static_cast<int64_t>(time);
    }
    fake.add_wait(thread, fake.stack({"main", "epoll_wait"}), ran, kWindow - ran);
    fake.add_series(model::SeriesScope::load, 0, "requests",
                    {{0, 0}, {kWindow, static_cast<int64_t>(requests)}});
    auto values = read_run_values(fake, "drawn.assay", tree);
    EXPECT_TRUE(values);
    return *values;
  }

  Comparison comparison(const Costs& base, const Costs& next, int runs,
                        const CompareOptions& options = {}) {
    UnionTree tree;
    std::vector<RunValues> a, b;
    for (int i = 0; i < runs; ++i) {
      a.push_back(run(base, tree));
      b.push_back(run(next, tree));
    }
    auto out = compare(tree, std::move(a), std::move(b), options);
    EXPECT_TRUE(out);
    return *out;
  }

 private:
  std::mt19937_64 random_;
  double machine_;
};

Costs with(const std::vector<std::string>& path, double factor) {
  Costs costs = kServer;
  costs.at(path) *= factor;
  return costs;
}

const Change* change_of(const Comparison& comparison, const std::string& function) {
  for (const Change& change : comparison.changes) {
    if (change.function == function) return &change;
  }
  return nullptr;
}

const Measure& measure_of(const Comparison& comparison, const std::string& id) {
  for (const Measure& measure : comparison.measures) {
    if (measure.id == id) return measure;
  }
  ADD_FAILURE() << "no measure " << id;
  static const Measure kNone;
  return kNone;
}

TEST(Compare, ADearerFunctionIsNamedAndItsCallersAreNot) {
  Comparison out = Drawn(1).comparison(kServer, with({"main", "serve", "lookup"}, 1.3), 10);
  EXPECT_EQ(out.per, Per::request);
  const Change* lookup = change_of(out, "lookup");
  ASSERT_NE(lookup, nullptr);
  EXPECT_EQ(lookup->time.outcome, Outcome::higher);
  EXPECT_LT(lookup->time.low, 1.3);
  EXPECT_GT(lookup->time.high, 1.3);
  EXPECT_EQ(lookup->callers.front(), "serve");
  EXPECT_EQ(change_of(out, "main"), nullptr);
  EXPECT_EQ(change_of(out, "serve"), nullptr);
  EXPECT_EQ(out.changes.size(), 1u);
}

TEST(Compare, WhatIsCalledMoreIsToldOnce) {
  Costs more = with({"main", "serve", "render", "escape"}, 1.5);
  more.at({"main", "serve", "render", "join"}) *= 1.5;
  Comparison out = Drawn(2).comparison(kServer, more, 10);
  const Change* render = change_of(out, "render");
  ASSERT_NE(render, nullptr);
  EXPECT_TRUE(render->with_callees);
  EXPECT_EQ(change_of(out, "escape"), nullptr) << "its caller's change is not told again";
  EXPECT_EQ(change_of(out, "join"), nullptr);
}

TEST(Compare, AHelperOfManyIsNotBlamedForOneCaller) {
  // The same loop was inlined into three functions, and one of them does more of it.
  Costs base{{{"main", "parse", "loop"}, 40'000},
             {{"main", "score", "loop"}, 30'000},
             {{"main", "render", "loop"}, 30'000}};
  Costs next = base;
  next.at({"main", "score", "loop"}) *= 1.5;
  Comparison out = Drawn(14).comparison(base, next, 10);
  ASSERT_NE(change_of(out, "score"), nullptr);
  EXPECT_TRUE(change_of(out, "score")->with_callees);
  EXPECT_EQ(change_of(out, "loop"), nullptr);
}

TEST(Compare, AHelperIsToldWhereMostOfItsChangeHappened) {
  // The loop is most of the program; its change is score's, and a little of it chance elsewhere.
  Costs base{{{"main", "parse", "loop"}, 30'000},
             {{"main", "score", "loop"}, 50'000},
             {{"main", "render", "loop"}, 20'000}};
  Costs next = base;
  next.at({"main", "parse", "loop"}) *= 1.03;
  next.at({"main", "score", "loop"}) *= 1.2;
  Comparison out = Drawn(19, 0.005).comparison(base, next, 10);
  const Change* loop = change_of(out, "loop");
  const Change* score = change_of(out, "score");
  ASSERT_TRUE(loop != nullptr || score != nullptr);
  if (loop != nullptr) {
    EXPECT_EQ(loop->callers.front(), "score");
  }
}

TEST(Compare, CodeThatOnlyMovedIsNoChange) {
  Costs moved = kServer;
  moved.erase({"main", "serve", "parse"});
  moved[{"main", "serve", "parse_fast"}] = 20'000;
  Comparison out = Drawn(3).comparison(kServer, moved, 10);
  const Change* gone = change_of(out, "parse");
  ASSERT_NE(gone, nullptr);
  EXPECT_EQ(gone->kind, ChangeKind::moved);
  EXPECT_EQ(gone->partner, "parse_fast");
  EXPECT_NE(measure_of(out, "cpu_per_request").outcome, Outcome::higher);
  EXPECT_NE(measure_of(out, "cpu_per_request").outcome, Outcome::lower);
}

TEST(Compare, NewAndVanishedFunctionsAreListed) {
  Costs next = kServer;
  next.erase({"main", "serve", "render", "join"});
  next[{"main", "log"}] = 30'000;
  Comparison out = Drawn(4).comparison(kServer, next, 6);
  ASSERT_NE(change_of(out, "log"), nullptr);
  EXPECT_EQ(change_of(out, "log")->kind, ChangeKind::appeared);
  ASSERT_NE(change_of(out, "join"), nullptr);
  EXPECT_EQ(change_of(out, "join")->kind, ChangeKind::vanished);
}

TEST(Compare, OneRunASideIsDescriptive) {
  Comparison out = Drawn(5).comparison(kServer, with({"main", "serve", "lookup"}, 2), 1);
  EXPECT_TRUE(out.descriptive);
  EXPECT_EQ(measure_of(out, "cpu_per_request").outcome, Outcome::descriptive);
  EXPECT_THAT(out.sentence, HasSubstr("one run on a side"));
  EXPECT_NE(change_of(out, "lookup"), nullptr);
}

TEST(Compare, NoChangeIsSaidOnlyWhenItIsShown) {
  // Twenty runs with 2 % between them can exclude 2 %; three cannot.
  EXPECT_EQ(measure_of(Drawn(6).comparison(kServer, kServer, 40), "cpu_per_request").outcome,
            Outcome::no_change);
  EXPECT_EQ(measure_of(Drawn(7).comparison(kServer, kServer, 2), "cpu_per_request").outcome,
            Outcome::undecided);
}

TEST(Compare, FindsTenPercentInTenRuns) {
  int found = 0;
  constexpr int kRounds = 20;
  for (int i = 0; i < kRounds; ++i) {
    Comparison out = Drawn(100 + static_cast<uint64_t>(i))
                         .comparison(kServer, with({"main", "serve", "lookup"}, 1.1), 10);
    found += change_of(out, "lookup") != nullptr;
  }
  EXPECT_GE(found, kRounds * 9 / 10) << "power of 90 %";
}

// The machine's speed is the same for all functions of a run, so it must not hide one of them.
TEST(Compare, FindsTenPercentWhileTheMachineVariesByAsMuch) {
  int found = 0, wrong = 0;
  constexpr int kRounds = 20;
  for (int i = 0; i < kRounds; ++i) {
    Comparison out = Drawn(200 + static_cast<uint64_t>(i), 0.1)
                         .comparison(kServer, with({"main", "serve", "lookup"}, 1.1), 10);
    found += change_of(out, "lookup") != nullptr;
    wrong += change_of(out, "parse") != nullptr || change_of(out, "escape") != nullptr;
    EXPECT_TRUE(out.yardstick.used);
  }
  EXPECT_GE(found, kRounds * 9 / 10) << "power of 90 %";
  EXPECT_LE(wrong, 1) << "what did not change is not blamed";
}

TEST(Compare, AChangeOfMostOfTheProgramIsNotTurnedAround) {
  // Two of five paths, 55 % of the time, are dearer: the others did not become cheaper.
  Costs next = with({"main", "serve", "lookup"}, 1.4);
  next.at({"main", "serve", "render", "escape"}) *= 1.4;
  Comparison out = Drawn(15, 0.05).comparison(kServer, next, 10);
  ASSERT_NE(change_of(out, "lookup"), nullptr);
  EXPECT_NEAR(change_of(out, "lookup")->time.ratio, 1.4, 0.06);
  ASSERT_NE(change_of(out, "escape"), nullptr);
  for (const char* other : {"parse", "join", "serve"}) EXPECT_EQ(change_of(out, other), nullptr);
}

TEST(Compare, WhenEverythingIsDearerThatIsSaid) {
  Costs next = kServer;
  for (auto& [path, ns] : next) ns *= 1.3;
  Comparison out = Drawn(16).comparison(kServer, next, 10);
  EXPECT_EQ(measure_of(out, "cpu_per_request").outcome, Outcome::higher);
  std::string warnings;
  for (const std::string& warning : out.warnings) warnings += warning;
  EXPECT_THAT(warnings, HasSubstr("most of the program changed alike, by +"));
}

TEST(Compare, ThereIsNoYardstickOfTwoPathsOrTwoRuns) {
  Costs two{{{"main", "work"}, 60'000}, {{"main", "log"}, 40'000}};
  EXPECT_FALSE(Drawn(17).comparison(two, two, 6).yardstick.used);
  EXPECT_FALSE(Drawn(17).comparison(kServer, kServer, 2).yardstick.used);
  EXPECT_TRUE(Drawn(17).comparison(kServer, kServer, 3).yardstick.used);
}

int alarms_between_equal_sides(double machine, int rounds, int runs) {
  int alarms = 0;
  for (int i = 0; i < rounds; ++i) {
    Comparison out =
        Drawn(500 + static_cast<uint64_t>(i), machine).comparison(kServer, kServer, runs);
    bool any = !out.changes.empty();
    for (const Measure& measure : out.measures)
      any = any || measure.outcome == Outcome::higher || measure.outcome == Outcome::lower;
    alarms += any;
  }
  return alarms;
}

// Any finding at all counts. 5 % of 100 are 5; the promise is at most that many in the long run.
TEST(Compare, FindsNothingBetweenEqualSides) {
  EXPECT_LE(alarms_between_equal_sides(0.02, 100, 10), 5);
}
TEST(Compare, FindsNothingBetweenEqualSidesOnANoisyMachine) {
  EXPECT_LE(alarms_between_equal_sides(0.1, 100, 10), 5);
}
TEST(Compare, FindsNothingBetweenEqualSidesOfFewRuns) {
  EXPECT_LE(alarms_between_equal_sides(0.05, 100, 3), 5);
}

TEST(Compare, PerRequestNeedsLoad) {
  UnionTree tree;
  Drawn drawn(8);
  RunValues a = drawn.run(kServer, tree), b = drawn.run(kServer, tree);
  b.requests = 0;
  CompareOptions options;
  options.per = Per::request;
  auto failing = compare(tree, {a}, {b}, options);
  ASSERT_FALSE(failing);
  EXPECT_THAT(failing.error().what, HasSubstr("answered no request well"));
  b.load_measured = false;
  auto out = compare(tree, {a}, {b}, options);
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().what, HasSubstr("measured no load"));
  EXPECT_EQ(compare(tree, {a}, {b}, {})->per, Per::second);
  EXPECT_FALSE(compare(tree, {}, {b}, {}));
}

TEST(Compare, RequestsAreThoseOfTheReport) {
  FakeRun fake;
  fake.edit().info.window_end_ns = 2 * kNsPerSecond;
  fake.edit().info.sample_period_ns = kNsPerMs;
  auto thread = fake.add_thread(fake.add_process(7, "/opt/server"), 7, "server");
  fake.add_samples(thread, fake.stack({"main"}), 100, kNsPerMs);
  for (auto [key, value] : {std::pair{"kind", "url"}, {"throughput_per_s", "6209.5"}})
    fake.edit().facts.push_back({"load", key, value});
  // Its points lie beside the ends of the window.
  fake.add_series(model::SeriesScope::load, 0, "requests",
                  {{0, 11'455}, {kNsPerSecond * 19 / 10, 23'252}});
  UnionTree tree;
  auto values = read_run_values(fake, "run.assay", tree);
  ASSERT_TRUE(values);
  EXPECT_DOUBLE_EQ(values->requests, 2 * 6209.5);
}

TEST(Compare, DifferencesBesidesTheChangeAreCalledOut) {
  UnionTree tree;
  Drawn drawn(9);
  RunValues a = drawn.run(kServer, tree), b = drawn.run(kServer, tree);
  a.facts["host cpu_model"] = "One";
  b.facts["host cpu_model"] = "Another";
  b.info.sample_period_ns *= 2;
  b.lost_share = 0.2;
  auto out = compare(tree, {a}, {b}, {});
  ASSERT_TRUE(out);
  std::string all;
  for (const std::string& warning : out->warnings) all += warning + "\n";
  EXPECT_THAT(all, HasSubstr("CPU models: One and Another"));
  EXPECT_THAT(all, HasSubstr("different frequencies"));
  EXPECT_THAT(all, HasSubstr("lost 20.0 %"));
}

std::string all_warnings(const Comparison& comparison) {
  std::string all;
  for (const std::string& warning : comparison.warnings) all += warning + "\n";
  return all;
}

TEST(Compare, ImportedAndMixedRunsAreCalledThat) {
  UnionTree tree;
  Drawn drawn(10);
  RunValues recorded = drawn.run(kServer, tree), imported = drawn.run(kServer, tree);
  imported.info.backend = "import: pprof";
  imported.requests = 0;
  std::string mixed = all_warnings(*compare(tree, {recorded}, {imported}, {}));
  EXPECT_THAT(mixed, HasSubstr("1 of 2 runs were imported"));
  EXPECT_THAT(mixed, HasSubstr("only shares of the samples are compared"));
  EXPECT_THAT(all_warnings(*compare(tree, {imported}, {imported}, {})),
              HasSubstr("the runs were imported"));
}

TEST(Compare, AnotherBuildOrMachineIsCalledThat) {
  UnionTree tree;
  Drawn drawn(11);
  RunValues a = drawn.run(kServer, tree), b = drawn.run(kServer, tree);
  a.facts["process 0 build"] = "optimised";
  b.facts["process 0 build"] = "debug";
  b.facts["process 0 sanitizers"] = "address";
  a.facts["host hostname"] = "here";
  b.facts["host hostname"] = "there";
  b.info.finished = false;
  std::string all = all_warnings(*compare(tree, {a}, {b}, {}));
  EXPECT_THAT(all, HasSubstr("build types: optimised and debug"));
  EXPECT_THAT(all, HasSubstr("sanitizers: none and address"));
  EXPECT_THAT(all, HasSubstr("machines: here and there"));
  EXPECT_THAT(all, HasSubstr("1 of 2 captures did not come to their end"));
}

TEST(Compare, AnEmptyRunIsRefused) {
  FakeRun empty;
  UnionTree tree;
  auto values = read_run_values(empty, "empty.assay", tree);
  ASSERT_FALSE(values);
  EXPECT_THAT(values.error().what, HasSubstr("empty.assay is empty"));
}

TEST(Compare, TheVerdictsOfBothSides) {
  UnionTree tree;
  Drawn drawn(12);
  RunValues a = drawn.run(kServer, tree), b = drawn.run(kServer, tree);
  EXPECT_FALSE(a.verdict.empty()) << "a run brings its verdict";
  a.verdict = "lock";
  a.verdict_sentence = "Threads wait for a lock.";
  b.verdict = "cpu";
  RunValues odd = b;
  odd.verdict = "mixed";
  auto out = compare(tree, {a, a}, {b, odd, b}, {});
  ASSERT_TRUE(out);
  EXPECT_EQ(out->base_verdict.kind, "lock");
  EXPECT_EQ(out->base_verdict.sentence, "Threads wait for a lock.");
  EXPECT_EQ(out->next_verdict.agreeing, 2u);
  EXPECT_EQ(out->verdict_change, "The verdict was lock; now it is cpu (in 2 of 3 runs).");
}

TEST(Compare, LocksCategoriesAndCountersAreMeasures) {
  UnionTree tree;
  Drawn drawn(13);
  std::vector<RunValues> a, b;
  for (int i = 0; i < 5; ++i) {
    a.push_back(drawn.run(kServer, tree));
    b.push_back(drawn.run(kServer, tree));
    double wobble = 1 + 0.01 * i;
    a.back().lock_ns["store<int>"] = 4e9 * wobble;
    b.back().lock_ns["store<int>"] = 1e9 * wobble;
    a.back().category_ns["allocator"] = 1e8 * wobble;
    b.back().category_ns["allocator"] = 1e8 * wobble;
    a.back().counted = {{"minor_faults", 1000 * wobble}, {"rss", 10}};
    b.back().counted = {{"minor_faults", 5000 * wobble}, {"rss", 10}};
  }
  auto out = compare(tree, a, b, {});
  ASSERT_TRUE(out);
  EXPECT_EQ(measure_of(*out, "lock[store<int>]_per_request").outcome, Outcome::lower);
  EXPECT_EQ(measure_of(*out, "category[allocator]_per_request").outcome, Outcome::no_change);
  EXPECT_EQ(measure_of(*out, "minor_faults_per_request").outcome, Outcome::higher);
  EXPECT_NEAR(measure_of(*out, "minor_faults_per_request").ratio, 5, 1e-6);
  EXPECT_EQ(measure_of(*out, "rss").outcome, Outcome::no_change);
}

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
  int alarms = 0;
  for (uint64_t seed = 100; seed < 140; ++seed)
    alarms += !heap_comparison(kHeap, kHeap, 5, seed).heap_changes.empty();
  EXPECT_LE(alarms, 2);
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

TEST(CompareHeap, ProfilesOfTheHeapAloneHaveASentence) {
  Comparison out = heap_comparison(kHeap, kHeap, 3, 5);
  EXPECT_THAT(out.sentence, HasSubstr("heap: allocated per request"));
}

TEST(ComparableName, DropsWhatABuildAdds) {
  for (auto [name, wanted] : {std::pair<const char*, const char*>{"work", "work"},
                              {"work.isra.0", "work"},
                              {"work.part.3.cold", "work"},
                              {"work.constprop.0.isra.1", "work"},
                              {"f(int) [clone .cold]", "f(int)"},
                              {"work.llvm.1234567", "work"},
                              {"core::fmt::write::h0123456789abcdef", "core::fmt::write"},
                              {"main.(*Server).Serve", "main.(*Server).Serve"},
                              {"runtime.main", "runtime.main"},
                              {"v1.2", "v1.2"},
                              {"", ""}}) {
    EXPECT_EQ(comparable_name(name), wanted);
  }
}

}  // namespace
}  // namespace assay::analysis
