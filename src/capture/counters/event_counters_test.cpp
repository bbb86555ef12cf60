#include "capture/counters/event_counters.h"

#include <map>

#include <fcntl.h>
#include <gmock/gmock.h>

#include "capture/counters/recording_sink.h"
#include "os/fake_tree.h"

namespace assay::capture {
namespace {

using ::testing::ElementsAre;

class OneReading final : public os::CounterKernel {
 public:
  bool has_pmu = true;
  os::CounterReading reading{500, 100, 50};
  int opened = 0;

  Result<UniqueFd> open(const perf_event_attr& attr, pid_t, int) override {
    EXPECT_NE(attr.type, uint32_t{PERF_TYPE_SOFTWARE}) << "the kernel's own are polled elsewhere";
    if (!has_pmu) {
      errno = ENOENT;
      return fail_errno("perf_event_open");
    }
    ++opened;
    return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  Result<os::CounterReading> read(int) override { return reading; }
  Result<void> filter(int, const char*) override { return {}; }
};

struct EventCountersTest : ::testing::Test {
  RecordingSink sink;
  std::atomic<uint32_t> next{0};
  SeriesBook book{sink, next};
  TimeNs now = 1;
  Clock clock = [this] { return now; };
  LiveTasks tasks{{{{3}, 7}}, {{{1}, 7, 7}, {{2}, 7, 8}}};
};

TEST_F(EventCountersTest, HardwareByProcessScaledToTheWholeTime) {
  OneReading kernel;
  HardwareCounters counters(kernel, book, clock);
  counters.poll(tasks);
  kernel.reading = {900, 200, 100};
  now = 2;
  counters.poll(tasks);
  // Two threads, each 500 · 2, then 900 · 2.
  EXPECT_THAT(sink.values(model::SeriesScope::process, 3, "cycles"), ElementsAre(2000, 3600));
  EXPECT_THAT(sink.values(model::SeriesScope::process, 3, "llc_misses"), ElementsAre(2000, 3600));
  EXPECT_FALSE(sink.noted("hardware counters"));
}

TEST_F(EventCountersTest, ACumulativeSeriesNeverFallsThoughTurnsChange) {
  OneReading kernel;
  tasks.threads.pop_back();
  kernel.reading = {600, 1000, 100};
  HardwareCounters counters(kernel, book, clock);
  counters.poll(tasks);
  kernel.reading = {700, 1400, 300};  // all of it scaled at once: 3267
  now = 2;
  counters.poll(tasks);
  EXPECT_THAT(sink.values(model::SeriesScope::process, 3, "cycles"), ElementsAre(6000, 6200));
  EXPECT_THAT(sink.values(model::SeriesScope::process, 3, "counted_share", "cycles"),
              ElementsAre(100, 500));
}

TEST_F(EventCountersTest, WithoutAPmuThereIsOneNote) {
  OneReading kernel;
  kernel.has_pmu = false;
  HardwareCounters counters(kernel, book, clock);
  counters.poll(tasks);
  counters.poll(tasks);
  EXPECT_TRUE(sink.series().empty());
  ASSERT_EQ(sink.notes().size(), 1u);
  EXPECT_THAT(sink.notes()[0].text, ::testing::HasSubstr("PMU"));
}

TEST_F(EventCountersTest, MigrationsOfThreads) {
  os::FakeTree tree;
  tree.write("7/task/7/sched", "server (7, #threads: 2)\n---\nse.nr_migrations   :     12\n");
  tree.write("7/task/8/sched", "server (8, #threads: 2)\nnr_switches : 5\n");
  os::ProcFs proc(tree.root());
  MigrationCounters counters(proc, book, clock);
  counters.poll(tasks);
  tree.write("7/task/7/sched", "se.nr_migrations   :     40\n");
  now = 2;
  counters.poll(tasks);
  EXPECT_THAT(sink.values(model::SeriesScope::thread, 1, "migrations"), ElementsAre(12, 40));
  EXPECT_TRUE(sink.values(model::SeriesScope::thread, 2, "migrations").empty());
}

}  // namespace
}  // namespace assay::capture
