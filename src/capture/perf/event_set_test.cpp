#include "capture/perf/event_set.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <set>

#include <gtest/gtest.h>

#include "capture/perf/event_set_fixture.h"
#include "capture/perf/fake_perf_records.h"

namespace assay::capture {
namespace {

using fake::FakePerfKernel;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr size_t kPage = 4096;

TEST_F(EventSetTest, PerCpuIsTakenWhereItIsAllowed) {
  auto set = open();
  EXPECT_EQ(set->tier(), Tier::per_cpu);
  EXPECT_TRUE(set->has_off_cpu_stacks());
  auto events = kernel_.open_events();
  EXPECT_EQ(events.size(), 6u) << "side-band, on-CPU and off-CPU on each of two CPUs";
  for (const auto* event : events) {
    EXPECT_EQ(event->pid, -1);
    EXPECT_EQ(event->attr.inherit, 0u);
    EXPECT_EQ(event->attr.exclude_kernel, 0u);
    EXPECT_FALSE(event->enabled) << "nothing is measured before enable()";
  }
  EXPECT_THAT(topics(*set), UnorderedElementsAre("on-CPU event"));
}

TEST_F(EventSetTest, EveryEventAsksForTheLayoutThatRecordsAreParsedBy) {
  options_.on_cpu_copy_bytes = 4096;
  options_.off_cpu_copy_bytes = 1024;
  options_.off_cpu_user_chain = false;
  auto set = open();
  for (const auto* event : kernel_.open_events()) {
    const perf_event_attr& attr = event->attr;
    EXPECT_EQ(attr.size, sizeof attr);
    EXPECT_EQ(attr.sample_id_all, 1u);
    EXPECT_EQ(attr.use_clockid, 1u);
    EXPECT_EQ(attr.clockid, CLOCK_MONOTONIC);
    switch (kind_of(attr)) {
      case EventKind::side_band:
        EXPECT_EQ(attr.sample_type, kCommonSampleType);
        EXPECT_TRUE(attr.mmap2 && attr.comm && attr.comm_exec && attr.task && attr.context_switch &&
                    attr.build_id);
        break;
      case EventKind::on_cpu:
        EXPECT_EQ(attr.sample_type, kStackSampleType);
        EXPECT_EQ(attr.sample_stack_user, 4096u);
        EXPECT_EQ(attr.sample_regs_user, user_register_mask());
        EXPECT_EQ(attr.sample_period, static_cast<uint64_t>(set->sample_period_ns()));
        EXPECT_EQ(attr.exclude_callchain_user, 0u);
        break;
      case EventKind::off_cpu:
        EXPECT_EQ(attr.sample_type, kStackSampleType);
        EXPECT_EQ(attr.sample_stack_user, 1024u);
        EXPECT_EQ(attr.sample_regs_user, user_register_mask());
        EXPECT_EQ(attr.sample_period, 1u);
        EXPECT_EQ(attr.exclude_callchain_user, 1u);
        break;
      default:
        ADD_FAILURE() << "an event that nobody asked for";
    }
  }
}

TEST_F(EventSetTest, CyclesAreSampledWhereThereIsAPmu) {
  kernel_.rules.has_cycles = true;
  auto set = open();
  EXPECT_EQ(set->on_cpu_event(), "cycles");
  for (const auto* event : open_of_kind(EventKind::on_cpu)) {
    EXPECT_EQ(event->attr.type, static_cast<uint32_t>(PERF_TYPE_HARDWARE));
    EXPECT_EQ(event->attr.freq, 1u);
    EXPECT_EQ(event->attr.sample_freq, 99u);
  }
  EXPECT_THAT(set->notes(), testing::IsEmpty());
  EXPECT_EQ(kernel_.open_events().size(), 6u) << "the event that tried for a PMU is closed";
}

TEST_F(EventSetTest, WithoutAPmuTheTimerIsUsedAndSaid) {
  auto set = open();
  EXPECT_EQ(set->on_cpu_event(), "cpu-clock");
  EXPECT_EQ(set->sample_period_ns(), 1'000'000'000 / 99);
  EXPECT_THAT(find_note(*set, "on-CPU event").text, HasSubstr("no hardware PMU"));
}

TEST_F(EventSetTest, PerTaskIsTakenWhereOtherProcessesAreRefused) {
  kernel_.rules.every_process = false;
  auto set = open();
  EXPECT_EQ(set->tier(), Tier::per_task);
  EXPECT_TRUE(set->has_off_cpu_stacks());
  EXPECT_THAT(topics(*set), Contains("events"));
  EXPECT_THAT(topics(*set), Not(Contains("kernel")));
  std::map<std::pair<pid_t, int>, int> by_place;
  for (const auto* event : kernel_.open_events()) {
    ++by_place[{event->pid, event->cpu}];
    EXPECT_EQ(event->attr.inherit, 1u);
    EXPECT_EQ(event->attr.inherit_thread, 0u) << "children are wanted";
    EXPECT_EQ(event->attr.exclude_kernel, 0u);
  }
  EXPECT_EQ(by_place.size(), threads_.size() * options_.cpus.size()) << "every thread on every CPU";
  for (const auto& [place, events] : by_place)
    EXPECT_EQ(events, 3) << place.first << " on " << place.second;
  EXPECT_EQ(kernel_.rings().size(), 4u) << "two rings per CPU, however many threads";
}

TEST_F(EventSetTest, WithoutChildrenOnlyThreadsInherit) {
  options_.first_tier = Tier::per_task;
  options_.children = false;
  auto set = open();
  for (const auto* event : kernel_.open_events()) {
    EXPECT_EQ(event->attr.inherit, 1u);
    EXPECT_EQ(event->attr.inherit_thread, 1u);
  }
}

TEST_F(EventSetTest, UserOnlyIsTakenWhereTheKernelSideIsRefused) {
  kernel_.rules.every_process = false;
  kernel_.rules.kernel_side = false;
  auto set = open();
  EXPECT_EQ(set->tier(), Tier::user_only);
  EXPECT_FALSE(set->has_off_cpu_stacks());
  EXPECT_THAT(topics(*set), Contains("kernel"));
  EXPECT_THAT(topics(*set), Not(Contains("events")));
  EXPECT_THAT(find_note(*set, "kernel").remedy, HasSubstr("perf_event_paranoid"));
  for (const auto* event : kernel_.open_events()) EXPECT_EQ(event->attr.exclude_kernel, 1u);
  EXPECT_TRUE(open_of_kind(EventKind::off_cpu).empty())
      << "it would count nothing without the kernel's side";
  EXPECT_EQ(open_of_kind(EventKind::side_band).size(), 6u) << "switches still tell the durations";
}

TEST_F(EventSetTest, RefusedAltogetherFailsWithARemedyAndLeavesNothingOpen) {
  kernel_.rules.refuse = [](const perf_event_attr&, pid_t, int) { return EACCES; };
  Error error = open_fails();
  EXPECT_THAT(error.what, HasSubstr("does not allow perf events"));
  EXPECT_THAT(error.remedy, HasSubstr("perf_event_paranoid"));
  EXPECT_EQ(error.code, EACCES);
  EXPECT_TRUE(kernel_.open_events().empty());
}

TEST_F(EventSetTest, ATierThatFailsHalfwayIsClosed) {
  kernel_.rules.refuse = [](const perf_event_attr&, pid_t pid, int cpu) {
    return pid == -1 && cpu == 1 ? EPERM : 0;
  };
  auto set = open();
  EXPECT_EQ(set->tier(), Tier::per_task);
  for (const auto* event : kernel_.open_events()) EXPECT_NE(event->pid, -1);
  EXPECT_EQ(kernel_.rings().size(), 4u);
}

TEST_F(EventSetTest, OtherErrorsAreNotTakenForARefusal) {
  kernel_.rules.refuse = [](const perf_event_attr& attr, pid_t, int) {
    return attr.type == PERF_TYPE_HARDWARE ? 0 : EINVAL;
  };
  EXPECT_EQ(open_fails().code, EINVAL);
}

TEST_F(EventSetTest, AnEventSetNeedsACpu) {
  options_.cpus.clear();
  EXPECT_THAT(open_fails().what, HasSubstr("CPU"));
}

TEST_F(EventSetTest, EachEventWritesIntoTheRingOfItsCpuAndSort) {
  kernel_.rules.every_process = false;
  auto set = open();
  auto sources = set->sources();
  ASSERT_EQ(sources.size(), 4u);
  // A record written where the event's output goes comes out of the ring of that CPU.
  for (const auto* event : kernel_.open_events()) {
    auto ring = FakePerfKernel::ring_of(*event);
    ASSERT_TRUE(ring);
    bool side = kind_of(event->attr) == EventKind::side_band;
    ASSERT_TRUE(ring->write(fake::switch_record({.time = 1}, true)));
    for (size_t i = 0; i < sources.size(); ++i) {
      int records = 0;
      sources[i].ring->drain([&](auto) { ++records; });
      bool expected = sources[i].cpu == event->cpu && (i % 2 == 0) == side;
      EXPECT_EQ(records, expected ? 1 : 0) << "source " << i;
    }
  }
}

TEST_F(EventSetTest, RingsShareTheBudget) {
  options_.cpus = {0, 1, 2, 3};
  options_.ring_budget_bytes = 8u << 20;
  auto set = open();
  size_t sum = 0;
  for (auto& source : set->sources()) sum += source.ring->capacity();
  EXPECT_LE(sum, options_.ring_budget_bytes);
  EXPECT_GE(sum, options_.ring_budget_bytes / 4) << "powers of two lose less than half each";
  EXPECT_THAT(topics(*set), Not(Contains("rings")));
}

TEST_F(EventSetTest, RingsShrinkToTheSizeThatIsAllowed) {
  kernel_.rules.largest_ring_bytes = 128 * 1024;
  auto set = open();
  EXPECT_EQ(set->tier(), Tier::per_cpu);
  for (auto& source : set->sources()) {
    EXPECT_LE(source.ring->capacity(), 128u * 1024);
    EXPECT_GE(source.ring->capacity(), 8u * 1024);
  }
  EXPECT_THAT(find_note(*set, "rings").text, HasSubstr("locked memory"));
  EXPECT_EQ(std::ranges::count(topics(*set), "rings"), 1);
}

// Locked memory is one budget for all rings of a user: 516 KiB per CPU unless it was changed.
TEST_F(EventSetTest, RingsShareALockedMemoryLimitEvenly) {
  kernel_.rules.every_process = false;
  kernel_.rules.locked_bytes = 2 * 516 * 1024;
  auto set = open();
  EXPECT_EQ(set->tier(), Tier::per_task);
  auto sources = set->sources();
  ASSERT_EQ(sources.size(), 4u);
  EXPECT_EQ(sources[0].ring->capacity(), sources[2].ring->capacity()) << "CPUs are treated alike";
  EXPECT_EQ(sources[1].ring->capacity(), sources[3].ring->capacity());
  for (auto& source : sources) EXPECT_GE(source.ring->capacity(), 64u * 1024);
  EXPECT_THAT(topics(*set), Contains("rings"));
  EXPECT_EQ(kernel_.open_events().size(), 18u) << "what was opened on the way is closed";
}

TEST_F(EventSetTest, NoRoomForEvenTheSmallestRingsFails) {
  kernel_.rules.locked_bytes = 5 * kPage;
  EXPECT_EQ(open_fails().code, EPERM);
  EXPECT_TRUE(kernel_.open_events().empty());
}

TEST_F(EventSetTest, ThreadsBornWhileOpeningAreFound) {
  options_.first_tier = Tier::per_task;
  int listed = 0;
  auto list = [&listed] {
    ++listed;
    std::vector<pid_t> tids{100};
    if (listed >= 2) tids.push_back(101);
    if (listed >= 3) tids.push_back(102);
    return tids;
  };
  auto set = EventSet::open(kernel_, options_, list);
  ASSERT_TRUE(set);
  std::set<pid_t> followed;
  for (const auto* event : kernel_.open_events()) followed.insert(event->pid);
  EXPECT_THAT(followed, UnorderedElementsAre(100, 101, 102));
  EXPECT_EQ(listed, 4) << "the list without news is the last";
  EXPECT_EQ(kernel_.open_events().size(), 18u) << "no thread is opened twice";
}

TEST_F(EventSetTest, AThreadThatEndedIsPassedOver) {
  options_.first_tier = Tier::per_task;
  kernel_.rules.dead = {100};
  auto set = open();
  EXPECT_EQ(set->untracked_threads(), 0u);
  EXPECT_EQ(kernel_.open_events().size(), 12u);
  kernel_.rules.dead = {100, 101, 102};
  EXPECT_THAT(open_fails().what, HasSubstr("no threads left"));
}

TEST_F(EventSetTest, ThreadsBeyondTheDescriptorLimitAreCountedNotHalfFollowed) {
  options_.first_tier = Tier::per_task;
  kernel_.rules.most_events = 2 * 6 + 4;  // two threads, and not quite a third
  auto set = open();
  EXPECT_EQ(set->untracked_threads(), 1u);
  EXPECT_THAT(find_note(*set, "threads").text, HasSubstr("1 threads are not followed"));
  std::map<pid_t, int> by_thread;
  for (const auto* event : kernel_.open_events()) ++by_thread[event->pid];
  EXPECT_EQ(by_thread, (std::map<pid_t, int>{{100, 6}, {101, 6}}));
  EXPECT_TRUE(set->enable());
}

TEST_F(EventSetTest, ADescriptorLimitBelowOneThreadFailsWithARemedy) {
  options_.first_tier = Tier::per_task;
  kernel_.rules.most_events = 5;
  Error error = open_fails();
  EXPECT_EQ(error.code, EMFILE);
  EXPECT_THAT(error.remedy, HasSubstr("ulimit -n"));
  EXPECT_TRUE(kernel_.open_events().empty());
}

TEST_F(EventSetTest, UntrackedThreadsOfAFailedTierAreForgotten) {
  options_.first_tier = Tier::per_task;
  kernel_.rules.refuse = [](const perf_event_attr& attr, pid_t pid, int) {
    if (attr.exclude_kernel) return 0;
    return pid == 101 ? EMFILE : pid == 102 ? EACCES : 0;
  };
  auto set = open();
  EXPECT_EQ(set->tier(), Tier::user_only);
  EXPECT_EQ(set->untracked_threads(), 0u);
  EXPECT_THAT(topics(*set), Not(Contains("threads")));
}

TEST_F(EventSetTest, IdsTellTheKind) {
  auto set = open();
  for (const auto* event : kernel_.open_events())
    EXPECT_EQ(set->kind_of(event->id), kind_of(event->attr));
  EXPECT_EQ(set->kind_of(0), EventKind::unknown);
  EXPECT_EQ(set->kind_of(UINT64_MAX), EventKind::unknown);
}

TEST_F(EventSetTest, EnableAndDisableReachEveryEvent) {
  auto set = open();
  auto all_enabled = [this](bool enabled) {
    for (const auto* event : kernel_.open_events()) EXPECT_EQ(event->enabled, enabled);
  };
  EXPECT_TRUE(set->enable());
  all_enabled(true);
  set->disable();
  all_enabled(false);
}

TEST_F(EventSetTest, OffCpuCopyIsChangedByOpeningAnew) {
  auto set = open();
  ASSERT_TRUE(set->enable());
  auto before = open_of_kind(EventKind::off_cpu);
  ASSERT_TRUE(set->set_off_cpu_stacks(512, false));
  EXPECT_EQ(set->off_cpu_copy_bytes(), 512u);
  auto after = open_of_kind(EventKind::off_cpu);
  ASSERT_EQ(after.size(), before.size());
  for (const auto* event : after) {
    EXPECT_EQ(event->attr.sample_stack_user, 512u);
    EXPECT_TRUE(event->enabled);
    EXPECT_TRUE(FakePerfKernel::ring_of(*event)) << "into the same rings";
    EXPECT_EQ(set->kind_of(event->id), EventKind::off_cpu);
  }
  for (const auto* event : before) {
    EXPECT_FALSE(event->is_open());
    EXPECT_EQ(set->kind_of(event->id), EventKind::off_cpu) << "its records are still in the ring";
  }
  EXPECT_EQ(kernel_.open_events().size(), 6u);
}

TEST_F(EventSetTest, LostRecordsAreThoseOfAllEventsEvenOfClosedOnes) {
  auto set = open();
  ASSERT_TRUE(set->enable());
  for (const auto* event : kernel_.open_events()) kernel_.lose(*event, 1);
  EXPECT_EQ(set->lost_records(), 6u);
  ASSERT_TRUE(set->set_off_cpu_stacks(512, false));  // two of the six are opened anew
  EXPECT_EQ(set->lost_records(), 6u);
  kernel_.lose(*open_of_kind(EventKind::off_cpu).front(), 10);
  EXPECT_EQ(set->lost_records(), 16u);
}

TEST_F(EventSetTest, OffCpuCopyChangedBeforeEnableWaitsForIt) {
  auto set = open();
  ASSERT_TRUE(set->set_off_cpu_stacks(512, false));
  for (const auto* event : open_of_kind(EventKind::off_cpu)) EXPECT_FALSE(event->enabled);
  ASSERT_TRUE(set->enable());
  for (const auto* event : open_of_kind(EventKind::off_cpu)) EXPECT_TRUE(event->enabled);
}

TEST_F(EventSetTest, AFailedChangeOfTheOffCpuCopyKeepsTheOldEvents) {
  auto set = open();
  ASSERT_TRUE(set->enable());
  auto before = open_of_kind(EventKind::off_cpu);
  kernel_.rules.refuse = [](const perf_event_attr&, pid_t, int cpu) {
    return cpu == 1 ? EMFILE : 0;
  };
  EXPECT_FALSE(set->set_off_cpu_stacks(512, false));
  EXPECT_EQ(set->off_cpu_copy_bytes(), options_.off_cpu_copy_bytes);
  EXPECT_EQ(open_of_kind(EventKind::off_cpu), before) << "CPU 0's new event is closed again";
  for (const auto* event : before) EXPECT_TRUE(event->enabled);
  set->disable();
  for (const auto* event : before) EXPECT_FALSE(event->enabled) << "still under control";
}

TEST_F(EventSetTest, OffCpuCopyOfTasksIsNotChanged) {
  options_.first_tier = Tier::per_task;
  auto set = open();
  size_t opened = kernel_.events().size();
  EXPECT_FALSE(set->set_off_cpu_stacks(512, false));
  EXPECT_EQ(kernel_.events().size(), opened);
}

TEST_F(EventSetTest, ACpuThatComesBackHasNewEventsInItsOldRings) {
  auto set = open();
  ASSERT_TRUE(set->enable());
  auto sources = set->sources();
  for (int times = 0; times < 2; ++times) {
    size_t opened_before = kernel_.events().size();
    ASSERT_TRUE(set->reopen_cpu(1));
    std::set<EventKind> kinds;
    for (size_t i = opened_before; i < kernel_.events().size(); ++i) {
      const auto& event = *kernel_.events()[i];
      kinds.insert(kind_of(event.attr));
      EXPECT_EQ(event.cpu, 1);
      EXPECT_TRUE(event.is_open() && event.enabled);
      EXPECT_TRUE(FakePerfKernel::ring_of(event)) << "into the rings that are read";
    }
    EXPECT_EQ(kinds, (std::set{EventKind::side_band, EventKind::on_cpu, EventKind::off_cpu}));
    EXPECT_EQ(kernel_.open_events().size(), 8u) << "3 of each CPU, and the owners of 2 rings";
  }
  auto after = set->sources();
  ASSERT_EQ(after.size(), sources.size());
  for (size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i].ring, sources[i].ring);
  EXPECT_FALSE(set->reopen_cpu(7)) << "it was not there when the rings were made";
}

TEST_F(EventSetTest, EventsOfThreadsOutliveACpu) {
  kernel_.rules.every_process = false;
  auto set = open();
  size_t opened = kernel_.events().size();
  EXPECT_TRUE(set->reopen_cpu(1));
  EXPECT_EQ(kernel_.events().size(), opened);
}

TEST_F(EventSetTest, AbsentWakeupsGiveNoWokenThread) {
  auto set = open();
  EXPECT_FALSE(set->has_wakeups());
  EXPECT_EQ(set->woken_tid(fake::stack_pattern(64)), -1);
}

}  // namespace
}  // namespace assay::capture
