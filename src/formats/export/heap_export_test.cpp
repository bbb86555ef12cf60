// Allocations in the formats that hold them.
#include <gtest/gtest.h>

#include "formats/export/export_fixture.h"
#include "formats/gzip.h"

namespace assay::formats {
namespace {

class HeapExport : public testing::Test {
 protected:
  HeapExport() {
    run_.edit().info.backend = "heap";
    run_.edit().info.window_end_ns = 10 * kNsPerSecond;
    model::ThreadId thread = run_.add_thread(run_.add_process(100, "/opt/server"), 100, "server");
    model::StackId kept = run_.stack({"main", "keeps"}), freed = run_.stack({"main", "frees"});
    // So large that every one is sampled: weights are 1 and sums are exact.
    for (int i = 0; i < 10; ++i) {
      run_.add_alloc(thread, kept, i * kNsPerSecond / 2, 1'000'000, 1000);
      run_.add_alloc(thread, freed, i * kNsPerSecond / 2, 500'000, 1000,
                     (i + 1) * kNsPerSecond / 2);
    }
  }
  analysis::FakeRun run_;
};

TEST_F(HeapExport, FoldedStacksOfEachMetric) {
  EXPECT_EQ(exported(run_, find_format("folded")), "server;main;keeps 10000000\n")
      << "the live heap";
  EXPECT_EQ(exported(run_, find_format("folded"), Metric::inuse_objects), "server;main;keeps 10\n");
  EXPECT_EQ(exported(run_, find_format("folded"), Metric::alloc_space),
            "server;main;keeps 10000000\nserver;main;frees 5000000\n");
  EXPECT_EQ(exported(run_, find_format("folded"), Metric::alloc_objects),
            "server;main;keeps 10\nserver;main;frees 10\n");
}

TEST_F(HeapExport, InUseIsAsOfTheEndOfTheSelection) {
  ExportOptions options;
  options.format = find_format("folded");
  options.metric = Metric::inuse_objects;
  options.selection.to_ns = 900 * kNsPerMs;  // two of each came, one was freed
  EXPECT_EQ(exported(run_, options), "server;main;keeps 2\nserver;main;frees 1\n");
}

TEST_F(HeapExport, PprofHasTheFourTypesOfGo) {
  auto raw = gunzip(exported(run_, find_format("pprof")), 1 << 20);
  ASSERT_TRUE(raw);
  size_t at = 0;
  for (const char* text :
       {"alloc_objects", "count", "alloc_space", "bytes", "inuse_objects", "inuse_space"}) {
    size_t found = raw->find(text, at);
    EXPECT_NE(found, std::string::npos) << text;
    at = found == std::string::npos ? at : found;
  }
  EXPECT_EQ(raw->find("nanoseconds"), std::string::npos);
  EXPECT_NE(raw->find("operator new.*"), std::string::npos) << "frames that readers are to drop";
}

TEST_F(HeapExport, GperftoolsTextAddsUp) {
  std::string text = exported(run_, find_format("gperftools-heap"));
  EXPECT_TRUE(text.starts_with("heap profile:     10: 10000000 [    20: 15000000] @ heapprofile\n"))
      << text;
  EXPECT_NE(text.find("MAPPED_LIBRARIES:"), std::string::npos);
}

TEST_F(HeapExport, GreenIsItsOwnPalette) {
  std::string svg = exported(run_, find_format("svg"));
  EXPECT_NE(svg.find("Live heap"), std::string::npos);
  EXPECT_NE(svg, exported(run_, find_format("svg"), Metric::alloc_space));
}

TEST_F(HeapExport, FormatsOfTimeRefuse) {
  run::ScratchDirectory scratch;
  for (const FormatSpec* format : {find_format("firefox"), find_format("speedscope"),
                                   find_format("perf-script"), find_format("csv")}) {
    ExportOptions options;
    options.format = format;
    options.metric = Metric::inuse_space;
    EXPECT_FALSE(export_run(run_, options, scratch.file("out"))) << format->name;
  }
  analysis::FakeRun without;
  fill_server(without);
  ExportOptions options;
  options.format = find_format("folded");
  options.metric = Metric::inuse_space;
  auto done = export_run(without, options, scratch.file("out"));
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().what.find("no allocations"), std::string::npos);
}

TEST_F(HeapExport, TimeIsNotInIt) {
  run::ScratchDirectory scratch;
  for (Metric metric : {Metric::cpu, Metric::off, Metric::lock, Metric::wall}) {
    ExportOptions options;
    options.metric = metric;
    auto done = export_run(run_, options, scratch.file("out"));
    ASSERT_FALSE(done) << metric_name(metric);
    EXPECT_EQ(done.error().what, "the run is of the heap alone: it holds no time");
  }
}

}  // namespace
}  // namespace assay::formats
