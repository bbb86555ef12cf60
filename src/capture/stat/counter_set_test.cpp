#include "capture/stat/counter_set.h"

#include <cerrno>
#include <map>

#include <fcntl.h>
#include <gmock/gmock.h>

namespace assay::capture {
namespace {

using model::Count;
using model::count_of;
using ::testing::HasSubstr;

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
  Counts counts = set.read_all();
  const Count& cycles = count_of(counts, CounterId::cycles);
  EXPECT_TRUE(cycles.counted);
  EXPECT_DOUBLE_EQ(cycles.value, 1600);  // twice 600 · 1000 / 750
  EXPECT_DOUBLE_EQ(cycles.counted_share, 0.75);
  EXPECT_DOUBLE_EQ(count_of(set.read_thread(1), CounterId::cycles).value, 800);
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
  Counts counts = set.read_all();
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

TEST(CounterSet, BetweenTwoReadings) {
  Counts before, after;
  before[0] = {true, 100, 1, ""};
  after[0] = {true, 175, 0.5, ""};
  after[1] = {true, 5, 1, ""};
  Counts between = counts_between(before, after);
  EXPECT_DOUBLE_EQ(between[0].value, 75);
  EXPECT_DOUBLE_EQ(between[0].counted_share, 0.5);
  EXPECT_FALSE(between[1].counted);
}

}  // namespace
}  // namespace assay::capture
