#include "session/record/consumer.h"

#include <algorithm>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace assay::session {
namespace {

constexpr int64_t kPublishNs = 200 * kNsPerMs;    // how often the list of living threads is renewed
constexpr int64_t kOpenWaitsNs = 200 * kNsPerMs;  // how often waits that are still open are noted
constexpr int64_t kResyncNs = 2 * kNsPerSecond;   // how often /proc is asked again after a loss
constexpr int64_t kCpuLookNs = 50 * kNsPerMs;     // how often CPUs that came back are looked for
constexpr int64_t kPolicyNs = 50 * kNsPerMs;    // how often what is taken of stacks is reconsidered
constexpr int64_t kSnapshotNs = 50 * kNsPerMs;  // blocked threads' stacks where switches give none
constexpr int64_t kSnapshotSliceNs = 5 * kNsPerMs;  // at most this long at once, then records again

}  // namespace

Consumer::Consumer(Parts parts, TimeNs window_begin)
    : parts_(std::move(parts)),
      complete_until_(window_begin),
      cover_(std::move(parts_.cpus),
             {[this](int cpu) { return reopen_cpu(cpu); },
              [this](int cpu, TimeNs time, uint64_t samples) {
                parts_.recording.add_uncovered(cpu, time, samples);
              },
              [this](const model::QualityNote& note) { parts_.sink.add_note(note); }},
             parts_.events.sample_period_ns(), window_begin) {
  publish_live_tasks();
}

void Consumer::start() {
  thread_ = std::thread([this] { consume(); });
}

void Consumer::join() {
  if (thread_.joinable()) thread_.join();
}

void Consumer::close_events(TimeNs window_end) {
  std::lock_guard lock(events_mutex_);
  cover_.finish(window_end);
  events_closed_ = true;
  parts_.events.disable();
  if (parts_.bpf) parts_.bpf->end();
}

void Consumer::consume() {
  pthread_setname_np(pthread_self(), "assay-consumer");
  // Among thousands of runnable threads an ordinary one would fall behind the rings. Needs
  // privilege.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), -10);
  while (auto batch = parts_.reader.next()) {
    TimeNs now = batch->drained_at;
    parts_.recording.consume(std::move(*batch));
    if (parts_.bpf) parts_.bpf->refresh(parts_.tasks);
    complete_until_ = std::max(complete_until_.load(), parts_.recording.complete_until());
    keep_house(now);
    parts_.recording.take_first_snapshots(kSnapshotSliceNs);
  }
}

void Consumer::keep_house(TimeNs now) {
  if (parts_.heap != nullptr) parts_.heap->poll(now);
  if (now >= next_publish_) {
    next_publish_ = now + kPublishNs;
    publish_live_tasks();
    if (parts_.tasks.pids().empty()) target_gone_ = true;
  }
  if (now >= next_open_waits_) {
    next_open_waits_ = now + kOpenWaitsNs;
    parts_.sink.put_open_waits(parts_.recording.open_waits());
  }
  resynchronise_after_loss(now);
  look_at_cpus(now);
  choose_stacks(now);
  if (!parts_.events.has_off_cpu_stacks() && now >= next_snapshot_) {
    next_snapshot_ = now + kSnapshotNs;
    parts_.recording.snapshot_blocked_threads();
  }
}

void Consumer::resynchronise_after_loss(TimeNs now) {
  uint64_t lost = parts_.recording.counts().lost;
  if (lost > lost_at_resync_) {
    lost_at_resync_ = lost;
    resyncs_due_ = 2;  // the tracker lets go of a thread that it misses twice
  }
  if (now < next_resync_ || (resyncs_due_ == 0 && !launched_gone_)) return;
  next_resync_ = now + kResyncNs;
  resyncs_due_ = std::max(0, resyncs_due_ - 1);
  parts_.recording.resynchronise(now);
}

void Consumer::look_at_cpus(TimeNs now) {
  if (now < next_cpu_look_) return;
  next_cpu_look_ = now + kCpuLookNs;
  std::lock_guard lock(events_mutex_);
  if (!events_closed_) cover_.look(now);
}

Result<void> Consumer::reopen_cpu(int cpu) {
  if (auto opened = parts_.events.reopen_cpu(cpu); !opened) return opened;
  return parts_.bpf != nullptr ? parts_.bpf->reopen_cpu(cpu) : Result<void>{};
}

void Consumer::choose_stacks(TimeNs now) {
  std::lock_guard lock(events_mutex_);
  if (events_closed_ || parts_.bpf) return;
  if (now >= next_switch_tick_) {
    next_switch_tick_ = now + evidence::StackPolicy::kSwitchTickNs;
    parts_.stack_policy.pace_kernel_stacks(parts_.recording.switches(), now);
  }
  if (now >= next_policy_) {
    next_policy_ = now + kPolicyNs;
    parts_.stack_policy.reconsider(parts_.unwinder.stats(), parts_.stacks.take_needs());
  }
}

void Consumer::publish_live_tasks() {
  const evidence::Tasks& tasks = parts_.tasks;
  capture::LiveTasks live;
  for (pid_t pid : tasks.pids()) live.processes.push_back({*tasks.process(pid), pid});
  for (pid_t tid : tasks.tids()) {
    const evidence::Task task = *tasks.find(tid);
    live.threads.push_back({task.thread, task.pid, tid});
  }
  live_.publish(std::move(live));
}

}  // namespace assay::session
