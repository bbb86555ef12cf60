#include <map>

#include <fcntl.h>
#include <gmock/gmock.h>

#include "capture/stat/syscall_counter.h"
#include "capture/stat/top_down_counter.h"

namespace assay::capture {
namespace {

using ::testing::HasSubstr;

// Answers with prepared numbers by config. Descriptors are real, of /dev/null.
class PreparedKernel final : public os::CounterKernel {
 public:
  std::map<uint64_t, os::CounterReading> readings;
  std::map<uint64_t, bool> refused;

  Result<UniqueFd> open(const perf_event_attr& attr, pid_t, int leader) override {
    if (refused[attr.config]) return fail("refused");
    UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    configs_[fd.get()] = attr.config;
    followers[attr.config] = leader >= 0;
    return fd;
  }
  Result<os::CounterReading> read(int fd) override { return readings[configs_.at(fd)]; }
  Result<void> filter(int, const char*) override { return {}; }

  std::map<uint64_t, bool> followers;

 private:
  std::map<int, uint64_t> configs_;
};

os::Pmu intel() {
  os::Pmu pmu;
  pmu.type = 4;
  pmu.vendor = "GenuineIntel";
  pmu.family = 6;
  uint64_t umask = 0x400;
  for (const char* name : {"slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound",
                           "topdown-be-bound", "topdown-mem-bound"}) {
    pmu.events[name] = {umask, 1};
    umask += 0x100;
  }
  return pmu;
}

TEST(TopDownPlan, IntelsSlotsLead) {
  auto plan = plan_top_down(intel());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->method, model::TopDownMethod::intel_metrics);
  ASSERT_EQ(plan->groups.size(), 1u);
  EXPECT_EQ(plan->groups[0].front().name, "slots");
  EXPECT_EQ(plan->groups[0].back().name, "topdown-mem-bound");
}

TEST(TopDownPlan, AmdByFamily) {
  os::Pmu pmu;
  pmu.vendor = "AuthenticAMD";
  pmu.family = 0x19;
  pmu.model = 0x11;
  auto zen4 = plan_top_down(pmu);
  ASSERT_TRUE(zen4);
  EXPECT_EQ(zen4->slots_per_cycle, 6);
  EXPECT_EQ(zen4->groups[0][4].config, 0x1'0000'1ea0u);
  pmu.family = 0x1a;
  EXPECT_EQ(plan_top_down(pmu)->slots_per_cycle, 8);
  pmu.family = 0x19;
  pmu.model = 0x01;  // Zen 3
  auto zen3 = plan_top_down(pmu);
  ASSERT_FALSE(zen3);
  EXPECT_THAT(zen3.error().what, HasSubstr("Zen 4"));
  pmu.vendor = "HygonGenuine";
  EXPECT_FALSE(plan_top_down(pmu));
}

TEST(TopDownCounter, SumsThreadsAndScalesTurns) {
  auto plan = plan_top_down(intel());
  ASSERT_TRUE(plan);
  PreparedKernel kernel;
  kernel.readings[0x400] = {1000, 100, 50};
  kernel.readings[0x500] = {300, 100, 50};
  kernel.refused[0x900] = true;
  TopDownCounter counter(kernel, *plan);
  ASSERT_TRUE(counter.open({1, 2}, false));
  EXPECT_FALSE(kernel.followers[0x400]);
  EXPECT_TRUE(kernel.followers[0x500]);
  auto before = counter.read();
  kernel.readings[0x400] = {2000, 300, 100};
  kernel.readings[0x500] = {400, 300, 100};
  model::TopDownCounts counts = counter.between(before, counter.read());
  // 100 in 50 of the interval's 200 ns, of two threads; scaled totals give 2400 − 1200.
  EXPECT_DOUBLE_EQ(counts.values["topdown-retiring"], 800);
  EXPECT_DOUBLE_EQ(counts.counted_share, 0.25);
  EXPECT_FALSE(counts.values.contains("topdown-mem-bound"));
}

TEST(TopDownCounter, WithoutATurnItSaysSo) {
  PreparedKernel kernel;
  TopDownCounter counter(kernel, *plan_top_down(intel()));
  ASSERT_TRUE(counter.open({1}, false));
  auto before = counter.read();
  for (uint64_t config = 0x400; config <= 0x900; config += 0x100)
    kernel.readings[config] = {0, 100, 0};
  model::TopDownCounts counts = counter.between(before, counter.read());
  EXPECT_TRUE(counts.values.empty());
  EXPECT_THAT(counts.problem, HasSubstr("counters"));
}

TEST(TopDownCounter, WithoutItsLeaderThereIsNothing) {
  PreparedKernel kernel;
  kernel.refused[0x400] = true;
  TopDownCounter counter(kernel, *plan_top_down(intel()));
  EXPECT_FALSE(counter.open({1}, false));
}

Result<uint64_t> fake_number(const std::string& name) {
  if (name == "raw_syscalls/sys_enter") return 1;
  if (name == "syscalls/sys_enter_read") return 2;
  if (name == "syscalls/sys_enter_futex") return 3;
  return fail("no such tracepoint");
}

TEST(TracedSyscalls, TheSumAndWhatIsKnownByName) {
  PreparedKernel kernel;
  kernel.readings[1] = {100, 1, 1};
  kernel.readings[2] = {70, 1, 1};
  auto counter = open_traced_syscall_counter(kernel, {1, 2}, fake_number);
  ASSERT_TRUE(counter);
  SyscallCalls calls = (*counter)->read();
  EXPECT_EQ(calls.all, 200u);
  EXPECT_EQ(calls.by_number, (std::map<uint32_t, uint64_t>{{0, 140}}));
  kernel.refused[1] = true;
  EXPECT_FALSE(open_traced_syscall_counter(kernel, {1}, fake_number));
}

}  // namespace
}  // namespace assay::capture
