// What of one run is the same in another, and what may be said of the pair.
#include <gmock/gmock.h>

#include "analysis/compare/functions/comparable_name.h"
#include "analysis/compare/statistics/drawn_runs.h"
#include "analysis/compare/statistics/measures.h"

namespace assay::analysis {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A run of `program` with so many samples by path, of 1 ms each; `jitter` more of everything.
RunValues counted_run(UnionTree& tree, const std::string& program, const Costs& samples,
                      double jitter = 0, const std::string& backend = "perf_event") {
  FakeRun fake;
  fake.edit().info.window_end_ns = 10 * kNsPerSecond;
  fake.edit().info.sample_period_ns = kNsPerMs;
  fake.edit().info.backend = backend;
  auto thread = fake.add_thread(fake.add_process(7, "/opt/" + program), 7, program);
  for (const auto& [path, count] : samples)
    fake.add_samples(thread, fake.stack(path), static_cast<int>(count * (1 + jitter)), kNsPerMs);
  auto values = read_run_values(fake, program + ".assay", tree);
  EXPECT_TRUE(values);
  return *values;
}

std::vector<RunValues> four(UnionTree& tree, const std::string& program, const Costs& samples) {
  std::vector<RunValues> runs;
  for (double jitter : {0.0, 0.01, 0.02, 0.03})
    runs.push_back(counted_run(tree, program, samples, jitter));
  return runs;
}

Comparison compared(const std::string& a, const Costs& base, const std::string& b,
                    const Costs& next, CompareOptions options = {}) {
  UnionTree tree;
  std::vector<RunValues> first = four(tree, a, base), second = four(tree, b, next);
  auto out = compare(tree, first, second, options);
  EXPECT_TRUE(out);
  return *out;
}

TEST(Matching, ModulesLoseTheirVersions) {
  EXPECT_EQ(comparable_module("libstdc++.so.6.0.30"), "libstdc++.so");
  EXPECT_EQ(comparable_module("libc-2.31.so"), "libc.so");
  EXPECT_EQ(comparable_module("libfoo-client.so"), "libfoo-client.so");
  EXPECT_EQ(comparable_module("app.source"), "app.source");
  EXPECT_EQ(comparable_module("[unknown]"), "");
}

TEST(Matching, VariantsMayHaveProgramsOfDifferentNames) {
  Costs base{{{"old:main", "old:parse"}, 1000}, {{"old:main", "old:score"}, 1000}};
  Costs next{{{"new:main", "new:parse"}, 1000}, {{"new:main", "new:score"}, 1500}};
  Comparison out = compared("old", base, "new", next);
  ASSERT_NE(change_of(out, "score"), nullptr);
  EXPECT_EQ(change_of(out, "score")->kind, ChangeKind::changed);
  EXPECT_NEAR(change_of(out, "score")->time.ratio, 1.5, 0.1);
  EXPECT_EQ(change_of(out, "parse"), nullptr);
}

TEST(Matching, FunctionsOfUnknownModulesMatchByName) {
  UnionTree tree;
  RunValues known = counted_run(tree, "server", {{{"main", "score"}, 100}});
  RunValues unknown = counted_run(tree, "other", {{{"[unknown]:main", "[unknown]:score"}, 100}});
  EXPECT_EQ(tree.functions().size(), 2U);
  UnionTree reversed;
  counted_run(reversed, "other", {{{"[unknown]:main", "[unknown]:score"}, 100}});
  counted_run(reversed, "server", {{{"main", "score"}, 100}});
  EXPECT_EQ(reversed.functions().size(), 2U);
}

TEST(Moves, CodeThatMovedAndBecameDearerIsNotCalledMoved) {
  Costs base{{{"main", "a"}, 1000}, {{"main", "rest"}, 4000}};
  Costs moved{{{"main", "b"}, 1000}, {{"main", "rest"}, 4000}};
  Costs dearer{{{"main", "b"}, 1200}, {{"main", "rest"}, 4000}};
  EXPECT_EQ(change_of(compared("s", base, "s", moved), "b")->kind, ChangeKind::moved);
  EXPECT_EQ(change_of(compared("s", base, "s", dearer), "b")->kind, ChangeKind::appeared);
}

// `churn` is inlined into two functions and dearer in one of them.
TEST(Changes, AreToldOnceAndWhereTheyHappened) {
  Costs base{{{"main", "score", "churn"}, 1000},
             {{"main", "score"}, 20},
             {{"main", "escape", "churn"}, 900},
             {{"main", "rest"}, 3000}};
  Costs next = base;
  next[{"main", "score", "churn"}] = 1500;
  Comparison out = compared("s", base, "s", next);
  size_t told = 0;
  for (const Change& change : out.changes) {
    told += change.function == "score" || change.function == "churn" ? 1 : 0;
    bool at_escape = !change.callers.empty() && change.callers.front() == "escape";
    EXPECT_FALSE(change.function == "churn" && at_escape);
  }
  EXPECT_EQ(told, 1U);
}

TEST(Repeated, OneCaptureCountsOnce) {
  UnionTree tree;
  std::vector<RunValues> runs = four(tree, "s", {{{"main", "a"}, 1000}});
  for (size_t i = 0; i < runs.size(); ++i)
    runs[i].info.utc_begin_ns = static_cast<int64_t>(1'000'000 + i);
  EXPECT_TRUE(compare(tree, {runs[0], runs[1]}, {runs[2], runs[3]}, {}));
  RunValues copied = runs[0];
  copied.path = "copy.assay";
  auto out = compare(tree, {runs[0], copied}, {runs[2], runs[3]}, {});
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().what, HasSubstr("the same run"));
}

TEST(FailedRequests, AreAMeasureAndHaveNoLatency) {
  FakeRun fake;
  fake.edit().info.window_end_ns = 2 * kNsPerSecond;
  fake.edit().info.sample_period_ns = kNsPerMs;
  auto thread = fake.add_thread(fake.add_process(7, "/opt/server"), 7, "server");
  fake.add_samples(thread, fake.stack({"main"}), 100, kNsPerMs);
  for (auto [key, value] : {std::pair{"kind", "url"},
                            {"throughput_per_s", "0"},
                            {"requests", "500"},
                            {"errors", "500"},
                            {"p50_ns", "0"}})
    fake.edit().facts.push_back({"load", key, value});
  UnionTree tree;
  auto failing = read_run_values(fake, "failing.assay", tree);
  ASSERT_TRUE(failing);
  EXPECT_TRUE(failing->load_measured);
  EXPECT_FALSE(failing->latency_p50_ns);
  EXPECT_DOUBLE_EQ(failing->failed_share(), 1);

  RunValues good = *failing;
  good.requests = 500, good.errors = 0;
  auto out = compare(tree, {good, good}, {*failing, *failing}, {});
  ASSERT_TRUE(out);
  EXPECT_EQ(measure_of(*out, "failed").base, 0);
  EXPECT_NEAR(measure_of(*out, "failed").next, 100, 1e-6);
  EXPECT_THAT(all_warnings(*out), HasSubstr("100.0 % of its requests failed"));
}

TEST(CommandsThatEnd, AreComparedByTheRun) {
  UnionTree tree;
  std::vector<RunValues> base = four(tree, "s", {{{"main", "a"}, 1000}});
  std::vector<RunValues> next = four(tree, "s", {{{"main", "a"}, 1200}});
  for (auto* side : {&base, &next}) {
    for (RunValues& run : *side) run.info.finished = true, run.info.end_reason = "target exited";
  }
  for (RunValues& run : next) run.seconds *= 1.2;
  auto out = compare(tree, base, next, {});
  ASSERT_TRUE(out);
  EXPECT_EQ(out->per, Per::run);
  EXPECT_NEAR(measure_of(*out, "elapsed").ratio, 1.2, 1e-9);
}

TEST(ImportedRuns, AreComparedByShareOfTheirSamplesAlone) {
  UnionTree tree;
  RunValues recorded = counted_run(tree, "s", {{{"main", "a"}, 500}, {{"main", "b"}, 500}});
  RunValues imported =
      counted_run(tree, "s", {{{"main", "a"}, 50}, {{"main", "b"}, 50}}, 0, "import: folded");
  auto out = compare(tree, {recorded}, {imported}, {});
  ASSERT_TRUE(out);
  EXPECT_EQ(out->per, Per::share);
  EXPECT_THAT(out->changes, IsEmpty());
  EXPECT_EQ(out->warnings.size(), 1U);
  for (const Measure& measure : out->measures)
    EXPECT_THAT(measure.id, Not(HasSubstr("kernel_per"))) << "an import does not know that";
}

TEST(MeasureIds, AreKnownBeforeRunsAreRecorded) {
  for (const char* id : {"cpu_per_request", "latency_p99", "elapsed", "failed", "rss",
                         "blocked_lock_per_second", "lock[a b]_per_run", "minor_faults_per_share"})
    EXPECT_TRUE(is_measure_id(id)) << id;
  for (const char* id : {"cpu", "latency", "cpu_per_day", "lock[a_per_second", ""})
    EXPECT_FALSE(is_measure_id(id)) << id;
}

// How a stack ended says nothing of what the program did.
TEST(Matching, MarkersOfStacksAreNoFunctions) {
  UnionTree tree;
  RunValues base = counted_run(tree, "server", {{{"main", "score"}, 1000}});
  RunValues next = counted_run(tree, "server", {{{"!:1", "main", "score"}, 1000}});
  EXPECT_EQ(tree.nodes().size(), 3U) << "the root, main and score";
  auto out = compare(tree, {base}, {next}, {});
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->changes.empty());
}

// The kernel's clock and the samples of the recorded run differ by a tenth; those of its export,
// read back, are all there is of it.
TEST(Matching, SharesOfImportedRunsAreOfSamplesOnBothSides) {
  UnionTree tree;
  auto run = [&](const std::string& backend) {
    FakeRun fake;
    fake.edit().info.window_end_ns = 10 * kNsPerSecond;
    fake.edit().info.sample_period_ns = kNsPerMs;
    fake.edit().info.backend = backend;
    auto thread = fake.add_thread(fake.add_process(7, "/opt/server"), 7, "server");
    fake.add_samples(thread, fake.stack({"main", "score"}), 1100, kNsPerMs);
    if (backend == "perf_event")
      fake.add_wait(thread, fake.stack({"main", "k:ep_poll"}), kNsPerSecond, 9 * kNsPerSecond);
    return *read_run_values(fake, backend, tree);
  };
  RunValues base = run("perf_event"), next = run("import: pprof");
  ASSERT_NEAR(base.cpu_ns / base.sampled_ns, 1 / 1.1, 0.01);
  auto out = compare(tree, {base}, {next}, {});
  ASSERT_TRUE(out);
  ASSERT_EQ(out->per, Per::share);
  EXPECT_NEAR(measure_of(*out, "category[application]_per_share").ratio, 1, 0.001);
}

}  // namespace
}  // namespace assay::analysis
