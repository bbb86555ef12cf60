#include "capture/counters/poller.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "base/units.h"
#include "capture/counters/event_counters.h"
#include "capture/counters/machine_counters.h"
#include "capture/counters/other_processes.h"
#include "capture/counters/task_counters.h"
#include "capture/devices/accelerator_counters.h"

namespace assay::capture {
namespace {

constexpr int64_t kOpenFilesEvery = 5;  // intervals
constexpr int64_t kOthersEvery = 2;
constexpr int kNotableSlowdown = 4;  // times its interval: then the run says so

}  // namespace

CounterPoller::CounterPoller(CounterOptions options, TaskSource tasks, CounterSink& sink,
                             std::atomic<uint32_t>& next_series)
    : options_(std::move(options)),
      tasks_(std::move(tasks)),
      proc_(options_.proc_root),
      cgroups_(options_.proc_root, options_.path_prefix),
      book_(sink, next_series) {
  add_groups();
}

CounterPoller::~CounterPoller() = default;

// The weights divide the whole budget among the existing groups; the most expensive groups, which
// grow with the number of threads, get most.
void CounterPoller::add_groups() {
  struct Weighed {
    std::unique_ptr<CounterGroup> group;
    int64_t interval_ns;
    double weight;
  };
  std::vector<Weighed> all;
  auto add = [&all](std::unique_ptr<CounterGroup> group, int64_t interval_ns, double weight) {
    all.push_back({std::move(group), interval_ns, weight});
  };
  const Clock& clock = options_.clock;
  const int64_t second = options_.interval_ns;
  add(std::make_unique<SchedCounters>(proc_, book_, clock), options_.sched_interval_ns, 30);
  add(std::make_unique<ThreadCounters>(proc_, book_, clock), second, 25);
  add(std::make_unique<ProcessCounters>(proc_, book_, clock), second, 10);
  add(std::make_unique<OpenFileCounters>(proc_, book_, clock), second * kOpenFilesEvery, 2);
  add(std::make_unique<HostCounters>(proc_, book_, clock), second, 4);
  add(std::make_unique<CgroupCounters>(cgroups_, book_, clock), second, 4);
  auto owners = std::make_unique<SocketOwners>(proc_);
  SocketOwners& sockets_of = *owners;
  add(std::move(owners), second, 15);
  auto queues =
      std::make_unique<SocketCounters>(proc_, sockets_of, book_, clock, options_.socket_source);
  SocketCounters& sockets = *queues;
  add(std::move(queues), second / 2, 8);
  add(std::make_unique<OtherProcesses>(OtherProcesses::Parts{proc_, cgroups_, sockets_of, sockets,
                                                             book_.sink(), clock,
                                                             options_.unix_source, options_.self}),
      second * kOthersEvery, 20);
  if (!options_.devices.program.empty())
    add(std::make_unique<AcceleratorCounters>(AcceleratorCounters::Parts{
            sockets_of, book_, clock, options_.devices, options_.devices_always}),
        second / 2, 2);
  add(std::make_unique<MigrationCounters>(proc_, book_, clock), second * 5, 2);
  if (options_.hardware != nullptr)
    add(std::make_unique<HardwareCounters>(*options_.hardware, book_, clock), second, 10);
  add(std::make_unique<SelfCounters>(proc_, book_, clock, cpu_ns_), second, 2);
  double weights = 0;
  for (const Weighed& each : all) weights += each.weight;
  for (Weighed& each : all) {
    double share = options_.cpu_share * each.weight / weights;
    groups_.push_back({std::move(each.group), Cadence(each.interval_ns, share)});
  }
}

int64_t CounterPoller::cpu_now_ns() const {
  if (options_.cpu_clock) return options_.cpu_clock();
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

void CounterPoller::run(Scheduled& scheduled, const LiveTasks& tasks, TimeNs now_ns) {
  int64_t before = cpu_now_ns();
  scheduled.group->poll(tasks);
  scheduled.group->forget_the_gone(tasks);
  int64_t cost_ns = std::max<int64_t>(cpu_now_ns() - before, 0);
  cpu_ns_ += cost_ns;
  scheduled.cadence.ran(now_ns, cost_ns);
}

void CounterPoller::poll_all(TimeNs now_ns) {
  LiveTasks tasks = tasks_();
  book_.write_everything(true);
  for (Scheduled& scheduled : groups_) run(scheduled, tasks, now_ns);
  book_.write_everything(false);
  note_slow_groups();
}

TimeNs CounterPoller::poll(TimeNs now_ns) {
  auto due = [&](const Scheduled& scheduled) { return scheduled.cadence.due(now_ns); };
  if (std::ranges::any_of(groups_, due)) {
    LiveTasks tasks = tasks_();
    for (Scheduled& scheduled : groups_) {
      if (due(scheduled)) run(scheduled, tasks, now_ns);
    }
    note_slow_groups();
  }
  TimeNs next = INT64_MAX;
  for (const Scheduled& scheduled : groups_) next = std::min(next, scheduled.cadence.next_ns());
  return next;
}

void CounterPoller::note_slow_groups() {
  for (Scheduled& scheduled : groups_) {
    int64_t usual = scheduled.cadence.interval_ns(), pause = scheduled.cadence.pause_ns();
    if (scheduled.slowed || pause < usual * kNotableSlowdown) continue;
    scheduled.slowed = true;
    book_.sink().add_note(
        {"counters",
         fmt::format(
             "{} are read about every {} instead of every {}, so that reading them stays cheap",
             scheduled.group->name(), format_duration(pause), format_duration(usual)),
         ""});
  }
}

}  // namespace assay::capture
