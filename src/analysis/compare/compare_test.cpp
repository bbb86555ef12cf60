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
  constexpr int kRounds = 40;
  for (int i = 0; i < kRounds; ++i) {
    Comparison out = Drawn(100 + static_cast<uint64_t>(i))
                         .comparison(kServer, with({"main", "serve", "lookup"}, 1.1), 10);
    found += change_of(out, "lookup") != nullptr;
  }
  EXPECT_GE(found, kRounds * 9 / 10) << "power of 90 %";
}

TEST(Compare, FindsNothingBetweenEqualSides) {
  int alarms = 0;
  constexpr int kRounds = 100;
  for (int i = 0; i < kRounds; ++i) {
    Comparison out = Drawn(500 + static_cast<uint64_t>(i)).comparison(kServer, kServer, 10);
    alarms += !out.changes.empty();
  }
  // 5 % is the promise; the floor keeps it well below.
  EXPECT_LE(alarms, 5);
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
