#include "analysis/compare/compare.h"

#include <gmock/gmock.h>

#include "analysis/compare/statistics/drawn_runs.h"

namespace assay::analysis {
namespace {

using ::testing::HasSubstr;

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

TEST(Compare, PerRequestNeedsLoad) {
  UnionTree tree;
  Drawn drawn(8);
  RunValues a = drawn.run(kServer, tree), b = drawn.run(kServer, tree);
  b.requests = 0;
  CompareOptions options;
  options.per = Per::request;
  auto failing = compare(tree, {a}, {b}, options);
  ASSERT_FALSE(failing);
  EXPECT_THAT(failing.error().what, HasSubstr("has no successful request"));
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

TEST(Compare, ImportedAndMixedRunsAreCalledThat) {
  UnionTree tree;
  Drawn drawn(10);
  RunValues recorded = drawn.run(kServer, tree), imported = drawn.run(kServer, tree);
  imported.info.backend = "import: pprof";
  imported.run_kind = run::RunKind::imported_time;
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
  EXPECT_TRUE(a.verdict) << "a run brings its verdict";
  a.verdict = VerdictKind::lock;
  a.verdict_sentence = "Threads wait for a lock.";
  b.verdict = VerdictKind::cpu;
  RunValues odd = b;
  odd.verdict = VerdictKind::mixed;
  auto out = compare(tree, {a, a}, {b, odd, b}, {});
  ASSERT_TRUE(out);
  EXPECT_EQ(out->base_verdict.kind, VerdictKind::lock);
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

}  // namespace
}  // namespace assay::analysis
