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
  explicit Drawn(uint64_t seed) : random_(seed) {}

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
    double run_factor = std::exp(between(random_));
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

TEST(Compare, FindsNothingBetweenEqualSides) {
  int alarms = 0;
  constexpr int kRounds = 60;
  for (int i = 0; i < kRounds; ++i) {
    Comparison out = Drawn(500 + static_cast<uint64_t>(i)).comparison(kServer, kServer, 10);
    bool any = !out.changes.empty();
    for (const Measure& measure : out.measures)
      any = any || measure.outcome == Outcome::higher || measure.outcome == Outcome::lower;
    alarms += any;
  }
  // 5 % is the promise; the floor keeps it well below.
  EXPECT_LE(alarms, 3);
}

TEST(Compare, PerRequestNeedsLoad) {
  UnionTree tree;
  Drawn drawn(8);
  RunValues a = drawn.run(kServer, tree), b = drawn.run(kServer, tree);
  b.requests = 0;
  CompareOptions options;
  options.per = Per::request;
  auto out = compare(tree, {a}, {b}, options);
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().what, HasSubstr("measured no load"));
  EXPECT_EQ(compare(tree, {a}, {b}, {})->per, Per::second);
  EXPECT_FALSE(compare(tree, {}, {b}, {}));
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
  EXPECT_THAT(mixed, HasSubstr("load was measured in 1 of 2 runs only: compared per second"));
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
