#include "analysis/load/load_summary.h"

#include <gtest/gtest.h>

#include "analysis/testing/fake_run.h"

namespace assay::analysis {
namespace {

constexpr auto kLoad = model::SeriesScope::load;

void add_facts(FakeRun& run, std::initializer_list<std::pair<const char*, const char*>> facts) {
  for (auto [key, value] : facts) run.edit().facts.push_back({"load", key, value});
}

TEST(LoadSummary, NoLoad) {
  FakeRun run;
  run.edit().facts.push_back({"host", "kernel", "6.1"});
  auto load = summarise_load(run);
  ASSERT_TRUE(load);
  EXPECT_FALSE(*load);
}

TEST(LoadSummary, FactsAndSeconds) {
  FakeRun run;
  add_facts(run, {{"kind", "url"},
                  {"what", "http://h/ -c 8"},
                  {"mode", "open"},
                  {"connections", "8"},
                  {"streams", "2"},
                  {"rate", "150.5"},
                  {"requests", "300"},
                  {"errors", "30"},
                  {"throughput_per_s", "90.0"},
                  {"p50_ns", "1000"},
                  {"p99_ns", "5000"},
                  {"generator_saturated", "yes"},
                  {"generator_cpu_share", "0.95"},
                  {"ended", "covered"},
                  {"restarts", "x"}});
  run.add_series(kLoad, 0, "requests",
                 {{0, 100}, {kNsPerSecond, 200}, {2 * kNsPerSecond, 300}, {3 * kNsPerSecond, 400}});
  run.add_series(kLoad, 0, "errors",
                 {{0, 0}, {kNsPerSecond, 10}, {2 * kNsPerSecond, 20}, {3 * kNsPerSecond, 30}});
  run.add_series(kLoad, 0, "latency_p50", {{kNsPerSecond, 900}, {2 * kNsPerSecond, 1100}});
  run.add_series(kLoad, 0, "generator_cpu", {{0, 7}, {kNsPerSecond, 17}, {2 * kNsPerSecond, 37}});
  auto result = summarise_load(run);
  ASSERT_TRUE(result && *result);
  const LoadSummary& load = **result;
  EXPECT_EQ(load.connections, 8U);
  EXPECT_EQ(load.rate, 150.5);
  EXPECT_EQ(load.errors, 30U);
  EXPECT_TRUE(load.generator_saturated);
  EXPECT_TRUE(load.covered());
  EXPECT_EQ(load.restarts, 0U);
  ASSERT_EQ(load.seconds.size(), 3U);
  EXPECT_EQ(load.seconds[0].requests, 100U);
  EXPECT_EQ(load.seconds[0].errors, 10U);
  EXPECT_DOUBLE_EQ(load.seconds[0].per_second, 90);
  EXPECT_EQ(load.seconds[1].p50_ns, 1100);
  EXPECT_EQ(load.seconds[1].generator_cpu_ns, 20);
  EXPECT_NEAR(load.drift, 0, 1e-9);
  std::string figures = load_figures(load);
  EXPECT_NE(figures.find("30 errors (10.0 %)"), figures.npos) << figures;
  EXPECT_NE(figures.find("8 connections × 2 streams"), figures.npos) << figures;
  EXPECT_NE(figures.find("generator itself"), figures.npos) << figures;
}

TEST(LoadSummary, DriftIsTheLineThroughTheSeconds) {
  FakeRun run;
  add_facts(run, {{"kind", "url"}, {"ended", "covered"}});
  std::vector<std::pair<TimeNs, int64_t>> points{{0, 0}};
  int64_t sum = 0;
  for (int i = 0; i < 11; ++i) {
    sum += 1000 - 20 * i;  // 1000 a second in the first, 800 in the last
    points.emplace_back((i + 1) * kNsPerSecond, sum);
  }
  run.add_series(kLoad, 0, "requests", points);
  auto load = summarise_load(run);
  ASSERT_TRUE(load && *load);
  EXPECT_NEAR((*load)->drift, -0.2, 0.001);
  EXPECT_LT((*load)->drift_error, 0.001);
}

TEST(LoadSummary, ACommandHasOnlyItsCpu) {
  FakeRun run;
  add_facts(run, {{"kind", "command"},
                  {"what", "wrk"},
                  {"ended", "early: ended with exit status 1"},
                  {"generator_saturated", "unknown"}});
  run.add_series(kLoad, 0, "generator_cpu", {{0, 0}, {kNsPerSecond, 500}});
  auto load = summarise_load(run);
  ASSERT_TRUE(load && *load);
  EXPECT_FALSE((*load)->measured());
  EXPECT_FALSE((*load)->covered());
  EXPECT_FALSE((*load)->generator_saturated);
  ASSERT_EQ((*load)->seconds.size(), 1U);
  EXPECT_EQ((*load)->seconds[0].generator_cpu_ns, 500);
  EXPECT_NE(load_figures(**load).find("did not cover"), std::string::npos);
}

TEST(LoadSummary, ARunThatWasCutOff) {
  FakeRun run;
  run.add_series(kLoad, 0, "requests", {{0, 0}, {kNsPerSecond, 10}, {kNsPerSecond, 10}});
  auto load = summarise_load(run);
  ASSERT_TRUE(load && *load);
  EXPECT_FALSE((*load)->covered());
  EXPECT_EQ((*load)->seconds.size(), 1U);
}

}  // namespace
}  // namespace assay::analysis
