// The scheduler's tracepoints in an event set: wake-ups and switches.
#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>

#include "capture/perf/event_set_fixture.h"
#include "capture/perf/fake_perf_records.h"
#include "os/events/tracefs.h"

namespace assay::capture {
namespace {

using fake::FakePerfKernel;
using testing::Contains;

// These read the format of sched_waking from this machine's tracefs.
class EventSetWakeups : public EventSetTest {
 protected:
  void SetUp() override {
    if (!os::read_tracepoint("sched/sched_waking")) {
      GTEST_SKIP()
          << "skipped: the sched_waking tracepoint cannot be read here (needs root and tracefs)";
    }
    options_.wakeups = true;
  }
};

TEST_F(EventSetWakeups, OneMoreEventPerCpuInTheSampleRing) {
  auto set = open();
  EXPECT_TRUE(set->has_wakeups());
  auto waking = open_of_kind(EventKind::waking);
  ASSERT_EQ(waking.size(), 2u);
  for (const auto* event : waking) {
    EXPECT_EQ(event->attr.sample_type, kWakingSampleType);
    EXPECT_EQ(set->kind_of(event->id), EventKind::waking);
    EXPECT_TRUE(FakePerfKernel::ring_of(*event));
  }
}

TEST_F(EventSetWakeups, TheWokenThreadIsReadFromThePayload) {
  auto set = open();
  uint32_t offset = os::read_tracepoint("sched/sched_waking")->fields["pid"].offset;
  fake::Bytes raw(offset);
  fake::put(raw, pid_t{4711});
  EXPECT_EQ(set->woken_tid(raw), 4711);
  raw.pop_back();
  EXPECT_EQ(set->woken_tid(raw), -1) << "too short";
  EXPECT_EQ(set->woken_tid({}), -1);
}

TEST_F(EventSetWakeups, RefusedOnOneCpuMeansNoneAndIsSaid) {
  kernel_.rules.refuse = [](const perf_event_attr& attr, pid_t, int cpu) {
    return attr.type == PERF_TYPE_TRACEPOINT && cpu == 1 ? EACCES : 0;
  };
  auto set = open();
  EXPECT_EQ(set->tier(), Tier::per_cpu) << "wake-ups are a luxury";
  EXPECT_FALSE(set->has_wakeups());
  EXPECT_THAT(topics(*set), Contains("wake-ups"));
  EXPECT_TRUE(open_of_kind(EventKind::waking).empty()) << "half of the wakers would mislead";
  EXPECT_EQ(kernel_.open_events().size(), 6u);
}

TEST_F(EventSetWakeups, TasksHaveNoneAndItIsSaid) {
  kernel_.rules.every_process = false;
  auto set = open();
  EXPECT_EQ(set->tier(), Tier::per_task);
  EXPECT_FALSE(set->has_wakeups());
  EXPECT_TRUE(open_of_kind(EventKind::waking).empty());
  EXPECT_EQ(std::ranges::count(topics(*set), "wake-ups"), 1);
}

class EventSetSwitches : public EventSetTest {
 protected:
  void SetUp() override {
    auto tracepoint = os::read_tracepoint("sched/sched_switch");
    if (!tracepoint) GTEST_SKIP() << "skipped: the sched_switch tracepoint cannot be read here";
    tracepoint_ = *tracepoint;
    options_.switch_tracepoint = true;
  }
  std::vector<const FakePerfKernel::Event*> switches() {
    std::vector<const FakePerfKernel::Event*> found;
    for (const auto* event : kernel_.open_events()) {
      if (event->attr.type == PERF_TYPE_TRACEPOINT) found.push_back(event);
    }
    return found;
  }
  fake::Bytes payload(pid_t from, pid_t to, int64_t state) {
    fake::Bytes raw(64);
    auto place = [&](const char* field, const auto& value) {
      std::memcpy(raw.data() + tracepoint_.fields.at(field).offset, &value, sizeof value);
    };
    place("prev_pid", from);
    place("next_pid", to);
    place("prev_state", state);
    return raw;
  }
  os::Tracepoint tracepoint_;
};

TEST_F(EventSetSwitches, OneRecordPerSwitchWithOrWithoutTheKernelsStack) {
  auto set = open();
  ASSERT_TRUE(set->has_bare_switches());
  ASSERT_EQ(switches().size(), 4u) << "two kinds on two CPUs";
  for (const auto* event : kernel_.open_events()) EXPECT_EQ(event->attr.context_switch, 0u);
  ASSERT_TRUE(set->enable());
  auto recorded = [&](EventKind kind) {
    int enabled = 0;
    for (const auto* event : switches())
      enabled += set->kind_of(event->id) == kind && event->enabled;
    return enabled;
  };
  EXPECT_EQ(recorded(EventKind::off_cpu), 2);
  EXPECT_EQ(recorded(EventKind::off_cpu_bare), 0);
  set->record_kernel_stacks_of_switches(false);
  EXPECT_EQ(recorded(EventKind::off_cpu), 0);
  EXPECT_EQ(recorded(EventKind::off_cpu_bare), 2);
  ASSERT_TRUE(set->set_off_cpu_stacks(4096, true));
  EXPECT_EQ(recorded(EventKind::off_cpu), 0) << "opened anew, the same one is on";
  EXPECT_EQ(recorded(EventKind::off_cpu_bare), 2);
}

TEST_F(EventSetSwitches, ThePayloadTellsWhoAndWhy) {
  auto set = open();
  auto blocked = set->switch_of(payload(7, 9, 1));
  ASSERT_TRUE(blocked);
  EXPECT_EQ(blocked->from, 7);
  EXPECT_EQ(blocked->to, 9);
  EXPECT_FALSE(blocked->preempted);
  EXPECT_TRUE(set->switch_of(payload(7, 9, 0))->preempted) << "yielded";
  EXPECT_TRUE(set->switch_of(payload(7, 9, 0x100))->preempted);
  EXPECT_FALSE(set->switch_of({})) << "too short";
}

TEST_F(EventSetSwitches, RefusedTheContextSwitchEventTakesItsPlace) {
  kernel_.rules.refuse = [](const perf_event_attr& attr, pid_t, int) {
    return attr.type == PERF_TYPE_TRACEPOINT ? EACCES : 0;
  };
  auto set = open();
  EXPECT_EQ(set->tier(), Tier::per_cpu);
  EXPECT_FALSE(set->has_bare_switches());
  EXPECT_EQ(open_of_kind(EventKind::off_cpu).size(), 2u);
  EXPECT_EQ(open_of_kind(EventKind::side_band).at(0)->attr.context_switch, 1u);
}

}  // namespace
}  // namespace assay::capture
