// Export and report speak of the same time: for every selection that both take, their sums agree.
#include "analysis/analyse.h"
#include "formats/export/export_fixture.h"

namespace assay::formats {
namespace {

class ReportAgreement : public testing::Test {
 protected:
  ReportAgreement() {
    fill_server(run_);
    // Its counts tell that a new thread waits for a CPU, although no wake-up was seen.
    model::ThreadId late = run_.add_thread({1}, 203, "pool-3", "pool-*", kNsPerSecond);
    run_.add_wait(late, {}, kNsPerSecond, 40 * kNsPerMs, {model::WaitFlag::new_thread});
    auto loop =
        run_.stack({"main", "aeMain", "aeProcessEvents", "libc.so.6:epoll_wait", "k:ep_poll"});
    run_.add_wait(late, loop, 1200 * kNsPerMs, 500 * kNsPerMs, {model::WaitFlag::runqueue_known})
        .runqueue_ns = 20 * kNsPerMs;
  }

  void expect_agreement(const Selection& selection) {
    analysis::Options options;
    options.selection = selection;
    auto report = analysis::analyse(run_, options);
    ASSERT_TRUE(report) << report.error().text();
    const analysis::TimeSplit& time = report->thread_time;
    Sums whole = sums_of(run_, selection);
    EXPECT_EQ(whole.cpu, report->on_cpu.time_ns);
    EXPECT_EQ(whole.samples, static_cast<int64_t>(report->on_cpu.samples));
    EXPECT_EQ(whole.off, time.blocked_total_ns() + time.idle_ns);
    EXPECT_EQ(whole.runqueue, time.runqueue_ns);
    Selection busy = selection;
    busy.without_idle = true;
    EXPECT_EQ(sums_of(run_, busy).off, time.blocked_total_ns());
  }

  analysis::FakeRun run_;
};

TEST_F(ReportAgreement, OnTheWholeRunAndItsParts) {
  for (const char* text : {"", "pid=200", "pid=100", "tid=201,203", "pool=pool-*", "process=main",
                           "process=worker 0", "thread=pool-[13]", "pid=200&thread=3$"}) {
    SCOPED_TRACE(text);
    expect_agreement(*run::parse_selection(text));
  }
}

TEST_F(ReportAgreement, OnWhatMatchesNothing) {
  Selection selection;
  selection.pools = {"no such pool"};
  analysis::Options options;
  options.selection = selection;
  auto report = analysis::analyse(run_, options);
  auto part = SelectedRun::make(run_, selection);
  ASSERT_FALSE(report);
  ASSERT_FALSE(part);
  EXPECT_EQ(report.error().text(), part.error().text());
}

}  // namespace
}  // namespace assay::formats
