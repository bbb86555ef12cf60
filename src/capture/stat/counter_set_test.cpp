#include "capture/stat/counter_set.h"

#include <cerrno>
#include <map>

#include <fcntl.h>
#include <gmock/gmock.h>

#include "capture/stat/counter_interval.h"

namespace assay::capture {
namespace {

using model::Count;
using model::count_of;
using ::testing::HasSubstr;

const CounterReadings kOpening;

// A kernel that answers with prepared numbers. Descriptors are real, of /dev/null.
class FakeCounterKernel final : public os::CounterKernel {
 public:
  bool has_pmu = true;
  bool kernel_side = true;
  std::map<pid_t, bool> dead;
  std::map<std::pair<uint32_t, uint64_t>, os::CounterReading> readings;  // by type and config
  int opened = 0;

  Result<UniqueFd> open(const perf_event_attr& attr, pid_t tid, int leader) override {
    if (dead[tid]) return refuse(ESRCH);
    if (!kernel_side && attr.exclude_kernel == 0) return refuse(EACCES);
    if (!has_pmu && attr.type != PERF_TYPE_SOFTWARE) return refuse(ENOENT);
    UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    events_[fd.get()] = {attr.type, attr.config};
    leaders[{attr.type, attr.config}] = leader >= 0;
    ++opened;
    return fd;
  }
  Result<os::CounterReading> read(int fd) override { return readings[events_.at(fd)]; }
  Result<void> filter(int, const char*) override { return {}; }

  std::map<std::pair<uint32_t, uint64_t>, bool> leaders;  // follows another event?

 private:
  static std::unexpected<Error> refuse(int code) {
    errno = code;
    return fail_errno("perf_event_open");
  }
  std::map<int, std::pair<uint32_t, uint64_t>> events_;
};

std::pair<uint32_t, uint64_t> key(CounterId id) {
  return {counter_event(id).type, counter_event(id).config};
}

TEST(CounterSet, SumsThreadsAndScalesWhatTookTurns) {
  FakeCounterKernel kernel;
  kernel.readings[key(CounterId::cycles)] = {600, 1000, 750};
  CounterSet set(kernel);
  ASSERT_TRUE(set.open({1, 2}));
  CounterReadings now = set.read();
  Counts counts = set.between(kOpening, now);
  const Count& cycles = count_of(counts, CounterId::cycles);
  EXPECT_TRUE(cycles.counted);
  EXPECT_DOUBLE_EQ(cycles.value, 1600);  // twice 600 · 1000 / 750
  EXPECT_DOUBLE_EQ(cycles.counted_share, 0.75);
  EXPECT_DOUBLE_EQ(count_of(set.thread_between(1, kOpening, now), CounterId::cycles).value, 800);
}

TEST(CounterSet, AnIntervalIsScaledByItsOwnTurns) {
  FakeCounterKernel kernel;
  CounterSet set(kernel);
  ASSERT_TRUE(set.open({1}));
  kernel.readings[key(CounterId::cycles)] = {500, 1000, 500};
  CounterReadings before = set.read();
  kernel.readings[key(CounterId::cycles)] = {900, 2000, 1500};
  const Counts counts = set.between(before, set.read());
  const Count& cycles = count_of(counts, CounterId::cycles);
  EXPECT_DOUBLE_EQ(cycles.value, 400);  // it counted all the time; scaled totals give 1200 − 1000
  EXPECT_DOUBLE_EQ(cycles.counted_share, 1);
}

TEST(CounterSet, WhereScaledTotalsFallTheIntervalDoesNot) {
  FakeCounterKernel kernel;
  CounterSet set(kernel);
  ASSERT_TRUE(set.open({1}));
  kernel.readings[key(CounterId::cycles)] = {600, 1000, 100};  // 6000 by then
  CounterReadings before = set.read();
  kernel.readings[key(CounterId::cycles)] = {700, 1400, 300};  // 3267
  const Counts counts = set.between(before, set.read());
  EXPECT_DOUBLE_EQ(count_of(counts, CounterId::cycles).value, 200);
  EXPECT_DOUBLE_EQ(count_of(counts, CounterId::cycles).counted_share, 0.5);
}

TEST(CounterSet, TheThreadsAddUpToTheWhole) {
  FakeCounterKernel kernel;
  CounterSet set(kernel);
  ASSERT_TRUE(set.open({1, 2, 3}));
  kernel.readings[key(CounterId::cpu_clock)] = {70, 70, 70};
  CounterReadings before = set.read();
  kernel.readings[key(CounterId::cpu_clock)] = {100, 100, 100};
  CounterReadings after = set.read();
  double threads = 0;
  for (pid_t tid : set.tids())
    threads += count_of(set.thread_between(tid, before, after), CounterId::cpu_clock).value;
  EXPECT_DOUBLE_EQ(threads, 90);
  EXPECT_DOUBLE_EQ(count_of(set.between(before, after), CounterId::cpu_clock).value, 90);
}

TEST(CounterSet, AnEventThatNeverHadItsTurnIsNotCounted) {
  FakeCounterKernel kernel;
  CounterSet set(kernel);
  ASSERT_TRUE(set.open({1}));
  CounterReadings before = set.read();
  kernel.readings[key(CounterId::cycles)] = {0, 1000, 0};
  const Counts counts = set.between(before, set.read());
  EXPECT_FALSE(count_of(counts, CounterId::cycles).counted);
  EXPECT_THAT(count_of(counts, CounterId::cycles).problem, HasSubstr("other events"));
  EXPECT_TRUE(count_of(counts, CounterId::branches).counted) << "not wanted: a true zero";
}

TEST(CounterInterval, WhoHadNoTurnCountsLikeTheOthers) {
  CounterInterval interval;
  interval.add({}, {300, 600, 300});
  interval.add({}, {0, 400, 0});
  EXPECT_DOUBLE_EQ(interval.value(), 1000);
  EXPECT_DOUBLE_EQ(interval.share(), 0.3);
}

TEST(CounterTotals, OnlyGrowAndTellTheShareOfTheLastInterval) {
  FakeCounterKernel kernel;
  CounterSet set(kernel);
  ASSERT_TRUE(set.open({1}));
  CounterTotals totals(set);
  auto cycles_at = [&](os::CounterReading reading) {
    kernel.readings[key(CounterId::cycles)] = reading;
    return count_of(totals.advance(), CounterId::cycles);
  };
  EXPECT_DOUBLE_EQ(cycles_at({600, 1000, 100}).value, 6000);
  Count later = cycles_at({700, 1400, 300});  // since opening: 700 · 1400 / 300 = 3267
  EXPECT_DOUBLE_EQ(later.value, 6200);
  EXPECT_DOUBLE_EQ(later.counted_share, 0.5);
  Count waiting = cycles_at({700, 1600, 300});
  EXPECT_DOUBLE_EQ(waiting.value, 6200) << "no turn: its time waits for the next one";
  EXPECT_DOUBLE_EQ(waiting.counted_share, 0);
  EXPECT_DOUBLE_EQ(cycles_at({900, 1800, 500}).value, 6600);  // 200 · 400 / 200
}

TEST(CounterSet, EventsOfARatioAreScheduledTogether) {
  FakeCounterKernel kernel;
  CounterSet set(kernel);
  ASSERT_TRUE(set.open({1}));
  EXPECT_FALSE(kernel.leaders[key(CounterId::cycles)]);
  EXPECT_TRUE(kernel.leaders[key(CounterId::instructions)]);
  EXPECT_TRUE(kernel.leaders[key(CounterId::llc_misses)]);
  EXPECT_FALSE(kernel.leaders[key(CounterId::cpu_clock)]);
}

TEST(CounterSet, WithoutAPmuTheRestStillCounts) {
  FakeCounterKernel kernel;
  kernel.has_pmu = false;
  kernel.readings[key(CounterId::context_switches)] = {42, 10, 10};
  CounterSet set(kernel);
  ASSERT_TRUE(set.open({1}));
  Counts counts = set.between(kOpening, set.read());
  EXPECT_EQ(count_of(counts, CounterId::context_switches).value, 42);
  EXPECT_FALSE(count_of(counts, CounterId::cycles).counted);
  EXPECT_THAT(count_of(counts, CounterId::cycles).problem, HasSubstr("PMU"));
}

TEST(CounterSet, AnOrdinaryUserCountsItsOwnSide) {
  FakeCounterKernel kernel;
  kernel.kernel_side = false;
  CounterSet set(kernel);
  ASSERT_TRUE(set.open({1}));
  EXPECT_TRUE(set.user_only());
}

TEST(CounterSet, ThreadsThatHaveEndedAreLeftOut) {
  FakeCounterKernel kernel;
  kernel.dead[2] = true;
  CounterSet set(kernel);
  ASSERT_TRUE(set.open({1, 2}));
  EXPECT_EQ(set.tids(), std::vector<pid_t>{1});
  CounterSet none(kernel);
  EXPECT_FALSE(none.open({2}));
}

TEST(CounterSet, WhatWasNotReadAtBothEndsIsNotCounted) {
  FakeCounterKernel kernel;
  CounterSet set(kernel);
  ASSERT_TRUE(set.open({1}));
  CounterReadings before = set.read(), after = set.read();
  before.front().reset();
  EXPECT_FALSE(count_of(set.between(before, after), CounterId::cpu_clock).counted);
  EXPECT_TRUE(count_of(set.between(after, after), CounterId::cpu_clock).counted);
}

}  // namespace
}  // namespace assay::capture
