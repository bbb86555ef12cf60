// A run through another tool's format and back keeps its totals.
#include "formats/export/export_fixture.h"
#include "formats/folded/read_folded.h"
#include "formats/perf/read_perf_script.h"
#include "formats/pprof/read_pprof.h"
#include "formats/speedscope/read_speedscope.h"

namespace assay::formats {
namespace {

class RoundTrip : public testing::Test {
 protected:
  RoundTrip() { fill_server(run_); }
  Input input(const FormatSpec* format, std::optional<Metric> metric = std::nullopt) {
    Input made = Input::of_bytes("test", exported(run_, format, metric));
    EXPECT_TRUE(made.load());
    return made;
  }
  analysis::FakeRun run_;
  run::ScratchDirectory scratch_;
};

TEST_F(RoundTrip, PprofKeepsEverything) {
  Input file = input(find_format("pprof"));
  auto back = imported(scratch_, [&](RunBuilder& b) { return read_pprof(file, b); });
  ASSERT_TRUE(back);
  EXPECT_EQ(sums_of(*back), sums_of(run_));
  for (const char* thread : {"pool-1", "pool-2", "accept"}) {
    Selection selection;
    selection.thread = thread;
    EXPECT_EQ(sums_of(*back, selection), sums_of(run_, selection)) << thread;
  }
  // The same stacks, by name, with kernel, inlines and truncation.
  EXPECT_EQ(exported(*back, find_format("folded"), Metric::samples),
            exported(run_, find_format("folded"), Metric::samples));
  EXPECT_EQ(exported(*back, find_format("csv")), exported(run_, find_format("csv")));
}

TEST_F(RoundTrip, FoldedKeepsTimeAndCounts) {
  ReadOptions options;
  Input counts = input(find_format("folded"), Metric::samples);
  auto back = imported(scratch_, [&](RunBuilder& b) { return read_folded(counts, options, b); });
  ASSERT_TRUE(back);
  EXPECT_EQ(sums_of(*back).samples, 45);
  options.unit_ns = 1;
  options.period_ns = 10 * kNsPerMs;
  Input times = input(find_format("folded"), Metric::cpu);
  back = imported(scratch_, [&](RunBuilder& b) { return read_folded(times, options, b); });
  ASSERT_TRUE(back);
  EXPECT_EQ(sums_of(*back), (Sums{45, 450'000'000, 0, 0, 0}));
}

TEST_F(RoundTrip, SpeedscopeKeepsTimeOnAndOffCpu) {
  Input file = input(find_format("speedscope"));
  auto back = imported(scratch_, [&](RunBuilder& b) { return read_speedscope(file, {}, b); });
  ASSERT_TRUE(back);
  EXPECT_EQ(sums_of(*back).cpu, sums_of(run_).cpu);
  EXPECT_EQ(sums_of(*back).off, sums_of(run_).off);
  EXPECT_EQ(back->contents().threads.size(), 3u) << "both profiles of a thread are one thread";
}

// Waits stay waits, by the leaves that all formats share.
TEST_F(RoundTrip, WallTimeComesBackAsCpuTimeAndWaits) {
  Sums want = sums_of(run_);
  auto expect_apart = [&](const run::Reader& back, const char* format) {
    Sums got = sums_of(back);
    EXPECT_EQ(got.cpu, want.cpu) << format;
    EXPECT_EQ(got.off, want.off) << format;
    EXPECT_EQ(got.runqueue, want.runqueue) << format;
    std::string folded = exported(back, find_format("folded"), Metric::off);
    EXPECT_EQ(folded.find("[blocked"), folded.npos) << format << ": the leaf is no function";
    std::string wall = exported(back, find_format("folded"), Metric::wall);
    EXPECT_NE(wall.find(";futex_wait;[blocked: lock] 350000000\n"), wall.npos) << wall;
    EXPECT_NE(wall.find(";vfs_read;[run queue] 7\n"), wall.npos) << wall;
  };
  for (bool inverted : {false, true}) {
    ExportOptions options;
    options.format = find_format("folded");
    options.metric = Metric::wall;
    options.inverted = inverted;
    Input file = Input::of_bytes("test", exported(run_, options));
    auto back = imported(scratch_, [&](RunBuilder& b) { return read_folded(file, {}, b); });
    ASSERT_TRUE(back);
    EXPECT_EQ(sums_of(*back).off, want.off);
    if (!inverted) expect_apart(*back, "folded");
  }
  Input file = input(find_format("speedscope"), Metric::wall);
  auto back = imported(scratch_, [&](RunBuilder& b) { return read_speedscope(file, {}, b); });
  ASSERT_TRUE(back);
  expect_apart(*back, "speedscope");
  Input profile = input(find_format("pprof"), Metric::wall);
  back = imported(scratch_, [&](RunBuilder& b) { return read_pprof(profile, b); });
  ASSERT_TRUE(back);
  expect_apart(*back, "pprof");
  EXPECT_EQ(sums_of(*back), want);
}

TEST_F(RoundTrip, SpeedscopeProfilesOfWaitsAreWaits) {
  Sums want = sums_of(run_);
  auto back_of = [&](Metric metric) {
    Input file = input(find_format("speedscope"), metric);
    return sums_of(
        *imported(scratch_, [&](RunBuilder& b) { return read_speedscope(file, {}, b); }));
  };
  EXPECT_EQ(back_of(Metric::off), (Sums{0, 0, 2, want.off, 0}));
  EXPECT_EQ(back_of(Metric::lock), (Sums{0, 0, 2, want.off, 0})) << "all of them are locks";
  EXPECT_EQ(back_of(Metric::runqueue), (Sums{0, 0, 0, 0, want.runqueue}));
  EXPECT_EQ(back_of(Metric::waits), (Sums{0, 0, 2, 2, 0}));
}

TEST_F(RoundTrip, PerfScriptKeepsTimesThreadsAndWaits) {
  Input file = input(find_format("perf-script"), Metric::wall);
  ReadOptions options;
  auto back = imported(scratch_, [&](RunBuilder& b) { return read_perf_script(file, options, b); });
  ASSERT_TRUE(back);
  Sums got = sums_of(*back), want = sums_of(run_);
  EXPECT_EQ(got.cpu, want.cpu);
  EXPECT_EQ(got.samples, want.samples);
  EXPECT_EQ(got.off, want.off);
  EXPECT_EQ(got.runqueue, want.runqueue);
  Selection selection;
  selection.thread = "pool-1";
  EXPECT_EQ(sums_of(*back, selection).cpu, 300 * kNsPerMs);
}

}  // namespace
}  // namespace assay::formats
