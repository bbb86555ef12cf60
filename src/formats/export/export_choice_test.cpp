// What may be asked of an export: metrics that a format has, selections that match something.
#include <filesystem>

#include <gmock/gmock.h>

#include "formats/export/export_fixture.h"
#include "formats/gzip.h"
#include "formats/pprof/read_pprof.h"
#include "run/run_kind.h"

namespace assay::formats {
namespace {

class ExportChoice : public ::testing::Test {
 protected:
  ExportChoice() { fill_server(server_); }

  Result<void> export_it(const ExportOptions& options) {
    return export_run(server_, options, scratch_.file("out"));
  }

  analysis::FakeRun server_;
  run::ScratchDirectory scratch_;
};

TEST_F(ExportChoice, ASelectionThatMatchesNothingIsAnErrorAndWritesNothing) {
  for (const FormatSpec* format : {find_format("folded"), find_format("svg"), find_format("pprof"),
                                   find_format("speedscope")}) {
    ExportOptions options;
    options.format = format;
    options.selection.focus = "no_such_function";
    auto done = export_it(options);
    ASSERT_FALSE(done) << format->name;
    EXPECT_THAT(done.error().what, ::testing::HasSubstr("nothing in the run matches"));
    EXPECT_FALSE(std::filesystem::exists(scratch_.file("out")));
    options.selection.focus = "memcpy";
    EXPECT_TRUE(export_it(options)) << format->name;
    std::filesystem::remove(scratch_.file("out"));
  }
}

TEST_F(ExportChoice, AMetricThatTheRunDoesNotHoldIsAnErrorAndWritesNothing) {
  analysis::FakeRun busy;
  busy.edit().info.window_end_ns = kNsPerSecond;
  model::ThreadId thread = busy.add_thread(busy.add_process(1, "/opt/server"), 1, "server");
  busy.add_samples(thread, busy.stack({"main", "work"}), 10, 10 * kNsPerMs);
  busy.add_wait(thread, busy.stack({"main", "k:hrtimer_nanosleep"}), 0, kNsPerMs);
  auto error_of = [&](const FormatSpec* format, std::optional<Metric> metric) {
    ExportOptions options;
    options.format = format;
    options.metric = metric;
    auto done = export_run(busy, options, scratch_.file("out"));
    EXPECT_FALSE(std::filesystem::exists(scratch_.file("out")) && !done) << format->name;
    std::filesystem::remove(scratch_.file("out"));
    return done ? "" : done.error().what + " | " + done.error().remedy;
  };
  using ::testing::AllOf, ::testing::HasSubstr;
  for (const FormatSpec* format :
       {find_format("folded"), find_format("svg"), find_format("pprof"), find_format("speedscope"),
        find_format("perf-script"), find_format("collapsed-by-second")}) {
    EXPECT_THAT(error_of(format, Metric::lock),
                AllOf(HasSubstr("no wait of the run is for a lock"), HasSubstr("assay record")));
    EXPECT_THAT(error_of(format, Metric::runqueue), HasSubstr("waited for a CPU"));
    EXPECT_EQ(error_of(format, Metric::wall), "") << "it knows of waits";
  }
  busy.edit().facts.push_back({"import", "waits", "absent"});
  EXPECT_THAT(error_of(find_format("svg"), Metric::wall), HasSubstr("would be CPU time alone"));
  analysis::FakeRun nothing;
  nothing.edit().info.window_end_ns = kNsPerSecond;
  ExportOptions options;
  EXPECT_THAT(export_run(nothing, options, scratch_.file("out")).error().what,
              HasSubstr("no on-CPU samples"));
}

TEST_F(ExportChoice, FilesByProcessAreOnlyOfThoseWithTheMetric) {
  analysis::FakeRun run;
  run.edit().info.window_end_ns = kNsPerSecond;
  model::ThreadId works = run.add_thread(run.add_process(1, "/opt/busy"), 1, "busy");
  model::ThreadId waits = run.add_thread(run.add_process(2, "/opt/idle"), 2, "idle");
  run.add_samples(works, run.stack({"main", "work"}), 10, 10 * kNsPerMs);
  run.add_wait(waits, run.stack({"main", "k:ep_poll"}), 0, kNsPerMs);
  ExportOptions options;  // folded, of CPU time
  auto paths = export_by_process(run, options, scratch_.path(), ".folded");
  ASSERT_TRUE(paths) << paths.error().text();
  EXPECT_EQ(*paths, std::vector{scratch_.file("main.folded")});
  options.format = find_format("pprof");  // holds both
  paths = export_by_process(run, options, scratch_.path(), ".pb.gz");
  ASSERT_TRUE(paths) << paths.error().text();
  EXPECT_EQ(paths->size(), 2u);
}

TEST_F(ExportChoice, TablesAreSortedByTheMetric) {
  std::string cpu = exported(server_, find_format("tsv")),
              off = exported(server_, find_format("tsv"), Metric::off);
  auto first = [](const std::string& table) {
    size_t begin = table.find('\n') + 1;
    return table.substr(begin, table.find('\t', begin) - begin);
  };
  EXPECT_EQ(first(cpu), "memcpy");
  EXPECT_EQ(first(off), "futex_wait");
}

TEST_F(ExportChoice, AMetricThatAFormatDoesNotHoldIsRefused) {
  ExportOptions options;
  options.format = find_format("csv");
  options.metric = Metric::lock;
  EXPECT_FALSE(export_it(options));
  options.format = find_format("firefox");
  options.metric = Metric::off;
  EXPECT_FALSE(export_it(options));
  options.metric = Metric::cpu;
  EXPECT_TRUE(export_it(options));
}

TEST_F(ExportChoice, WhatAnImportedProfileCountsIsNotCalledTime) {
  analysis::FakeRun run;
  run.edit().info.backend = "import: pprof";
  run.edit().facts = {{"import", "unit", "goroutine"}};
  model::ThreadId thread = run.add_thread(run.add_process(1, "/opt/server"), 1, "server");
  run.add_sample(thread, run.stack({"main", "runtime.gopark"}), 0, 32);
  using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;
  EXPECT_THAT(exported(run, find_format("svg")),
              AllOf(HasSubstr("Profile of goroutine"), HasSubstr("32 goroutine"),
                    Not(HasSubstr("32 ns")), Not(HasSubstr("CPU time"))));
  std::string packed = exported(run, find_format("pprof"));
  auto raw = gunzip(packed, 1 << 20);
  ASSERT_TRUE(raw);
  EXPECT_THAT(*raw, AllOf(HasSubstr("goroutine"), Not(HasSubstr("nanoseconds"))));
  Input file = Input::of_bytes("test", packed);
  ASSERT_TRUE(file.load());
  auto back = imported(scratch_, [&](RunBuilder& b) { return read_pprof(file, b); });
  ASSERT_TRUE(back);
  EXPECT_EQ(sums_of(*back).cpu, 32);
  run::Contents contents = back->contents();
  contents.info.backend = run.contents().info.backend;
  EXPECT_EQ(run::counted_unit(contents), "goroutine");
}

TEST_F(ExportChoice, ABaseMustHoldTheMetricToo) {
  analysis::FakeRun busy;  // without waits
  model::ThreadId thread = busy.add_thread(busy.add_process(1, "/opt/server"), 1, "server");
  busy.add_samples(thread, busy.stack({"main", "work"}), 10, 10 * kNsPerMs);
  analysis::FakeRun heap;
  heap.edit().info.backend = "heap";
  thread = heap.add_thread(heap.add_process(1, "/opt/server"), 1, "server");
  heap.add_alloc(thread, heap.stack({"main", "keep"}), 5, 1000, 1000);
  analysis::FakeRun timers;  // its waits are no lock's
  thread = timers.add_thread(timers.add_process(1, "/opt/server"), 1, "server");
  timers.add_wait(thread, timers.stack({"main", "k:hrtimer_nanosleep"}), 0, kNsPerMs);
  auto error_of = [&](const run::Reader& base, Metric metric, const std::string& focus = "") {
    ExportOptions options;
    options.format = find_format("svg");
    options.metric = metric;
    options.base = &base;
    options.selection.focus = focus;
    auto done = export_it(options);
    return done ? "" : done.error().what;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(error_of(busy, Metric::off), HasSubstr("the base: the run holds no waits"));
  EXPECT_THAT(error_of(heap, Metric::cpu), HasSubstr("the base: the run is of the heap alone"));
  EXPECT_THAT(error_of(timers, Metric::cpu), HasSubstr("the base: the run holds no on-CPU"));
  EXPECT_THAT(error_of(busy, Metric::inuse_space), HasSubstr("the run holds no allocations"));
  EXPECT_EQ(error_of(timers, Metric::lock), "") << "a lock that nobody waited for is new";
  EXPECT_EQ(error_of(busy, Metric::cpu, "memcpy"), "") << "a function that is new";
}

// How a stack ended would split what is the same in both.
TEST_F(ExportChoice, DifferencesLeaveMarkersOut) {
  auto with = [](const char* marker) {
    analysis::FakeRun run;
    model::ThreadId thread = run.add_thread(run.add_process(1, "/opt/server"), 1, "server");
    run.add_samples(thread, run.stack({marker, "main", "work"}), 10, 10 * kNsPerMs);
    return run;
  };
  analysis::FakeRun cut = with("!:1"), whole = with("!:2");
  ExportOptions options;
  options.format = find_format("svg");
  options.base = &whole;
  std::string picture = exported(cut, options);
  EXPECT_EQ(picture.find("\ngone"), picture.npos) << picture.substr(0, 4000);
  EXPECT_EQ(picture.find("\nnew"), picture.npos);
  EXPECT_NE(picture.find("work"), picture.npos);
}

}  // namespace
}  // namespace assay::formats
