#include "formats/export/selected_run.h"

#include "formats/export/export_fixture.h"

namespace assay::formats {
namespace {

class SelectedRunTest : public testing::Test {
 protected:
  SelectedRunTest() { fill_server(run_); }
  analysis::FakeRun run_;
};

TEST_F(SelectedRunTest, WholeRunIsCutToItsWindow) {
  // The second wait goes 100 ms beyond the window.
  EXPECT_EQ(sums_of(run_), (Sums{45, 450'000'000, 2, 350'000'000, 50'000'007}));
}

TEST_F(SelectedRunTest, ProcessesByRolePidAndLabel) {
  for (const char* name : {"worker 0", "200", "server [worker 0]"}) {
    Selection selection;
    selection.processes = {name};
    EXPECT_EQ(sums_of(run_, selection).samples, 40) << name;
  }
}

TEST_F(SelectedRunTest, ThreadsByExpressionOrId) {
  Selection selection;
  selection.thread = "^pool-[0-9]$";
  EXPECT_EQ(sums_of(run_, selection).samples, 40);
  selection.thread = "201";
  EXPECT_EQ(sums_of(run_, selection).samples, 30);
}

TEST_F(SelectedRunTest, TimeCutsWaits) {
  Selection selection;
  selection.from_ns = 1100 * kNsPerMs;
  selection.to_ns = 1270 * kNsPerMs;
  Sums sums = sums_of(run_, selection);
  EXPECT_EQ(sums.samples, 0);
  EXPECT_EQ(sums.off, 150 * kNsPerMs);
  EXPECT_EQ(sums.runqueue, 20 * kNsPerMs);
}

TEST_F(SelectedRunTest, FocusAndIgnoreLookAtWholeStacks) {
  Selection selection;
  selection.focus = "^parse$";
  EXPECT_EQ(sums_of(run_, selection).cpu, 300 * kNsPerMs);
  selection.focus = "main";
  selection.ignore = "memcpy|futex";
  EXPECT_EQ(sums_of(run_, selection), (Sums{10, 100'000'000, 0, 0, 7}));
}

TEST_F(SelectedRunTest, WithoutIdleOnlyTheWaitingForWorkGoes) {
  auto loop =
      run_.stack({"main", "aeMain", "aeProcessEvents", "libc.so.6:epoll_wait", "k:ep_poll"});
  model::ThreadId thread = run_.add_thread({0}, 101, "redis");
  run_.add_wait(thread, loop, 200 * kNsPerMs, 500 * kNsPerMs, {model::WaitFlag::runqueue_known})
      .runqueue_ns = 20 * kNsPerMs;
  Selection selection;
  EXPECT_EQ(sums_of(run_, selection), (Sums{45, 450'000'000, 3, 830'000'000, 70'000'007}));
  selection.without_idle = true;
  EXPECT_EQ(sums_of(run_, selection), (Sums{45, 450'000'000, 2, 350'000'000, 70'000'007}));
  // What is idle is a matter of the run, not of the part that is exported.
  selection.from_ns = 300 * kNsPerMs;
  selection.to_ns = 400 * kNsPerMs;
  EXPECT_EQ(sums_of(run_, selection).off, 0);
}

TEST_F(SelectedRunTest, WhatMatchesNothingOrIsNoExpressionIsAnError) {
  Selection selection;
  selection.thread = "(";
  EXPECT_FALSE(SelectedRun::make(run_, selection));
  selection.thread = "no such thread";
  EXPECT_FALSE(SelectedRun::make(run_, selection));
  selection = {};
  selection.from_ns = 2 * kNsPerSecond;
  selection.to_ns = 1 * kNsPerSecond;
  EXPECT_FALSE(SelectedRun::make(run_, selection));
}

TEST_F(SelectedRunTest, FoldedTotalsEqualTheMetrics) {
  auto total = [&](Metric metric) {
    int64_t sum = 0;
    std::istringstream lines(exported(run_, find_format("folded"), metric));
    for (std::string line; std::getline(lines, line);) {
      sum += std::stoll(line.substr(line.rfind(' ')));
    }
    return sum;
  };
  EXPECT_EQ(total(Metric::cpu), 450'000'000);
  EXPECT_EQ(total(Metric::samples), 45);
  EXPECT_EQ(total(Metric::off), 350'000'000);
  EXPECT_EQ(total(Metric::lock), 350'000'000);
  EXPECT_EQ(total(Metric::waits), 2);
  EXPECT_EQ(total(Metric::wall), 450'000'000 + 350'000'000 + 50'000'007);
}

TEST_F(SelectedRunTest, FoldedLinesAreWhatPeopleExpect) {
  std::string text = exported(run_, find_format("folded"), Metric::samples);
  EXPECT_NE(text.find("server [worker 0];_start;main;serve;parse;memcpy 30\n"), text.npos) << text;
  EXPECT_NE(text.find("server [main];[truncated"), text.npos) << text;
}

TEST_F(SelectedRunTest, OneFilePerProcessNamedAfterItsRole) {
  run::ScratchDirectory scratch;
  ExportOptions options;
  options.metric = Metric::cpu;
  auto paths = export_by_process(run_, options, scratch.path().string(), ".oncpu.folded");
  ASSERT_TRUE(paths) << paths.error().text();
  ASSERT_EQ(paths->size(), 2u);
  EXPECT_EQ(slurp(scratch.file("main.oncpu.folded")).find("worker"), std::string::npos);
  EXPECT_NE(slurp(scratch.file("worker-0.oncpu.folded")).find("parse"), std::string::npos);
}

TEST_F(SelectedRunTest, BySecondSharesWaitsOut) {
  std::string text = exported(run_, find_format("collapsed-by-second"), Metric::off);
  EXPECT_NE(text.find("1\t_start;main;pthread_mutex_lock;futex_wait\t350000000\n"), text.npos)
      << text;
}

}  // namespace
}  // namespace assay::formats
