// EventSet: opens the perf events and rings of a capture, the best that are permitted.
//
// Two rings per CPU: one for side-band records (mmap, comm, fork, exit, SWITCH), one for samples,
// so that a flood of samples cannot displace the records that names depend on.
//   on_cpu   cycles where there is a PMU, else cpu-clock
//   off_cpu  every context switch, with the stack that blocked. Per CPU this is one record with all
//            of it (sched:sched_switch) where tracefs can be read; otherwise the context-switch
//            event, and the SWITCH records of the side band for the times
//   waking   sched:sched_waking, to split a wait into blocked and runnable, and to know the waker
// Tiers, tried in this order:
//   per CPU    all CPUs; the reader filters by process. No cost per context switch of a task
//   per task   every thread of the target, inherited by its children. One's own processes need no
//              privilege
//   user only  as per task, without the kernel's side: waits have durations but no stacks
// A QualityNote says what is missing in a tier. Threads: one owner.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "capture/perf/record.h"
#include "capture/perf/ring.h"
#include "capture/perf/ring_reader.h"
#include "capture/perf/sched_tracepoints.h"
#include "model/run_info.h"
#include "os/events/perf_event.h"

namespace assay::capture {

enum class Tier : uint8_t { per_cpu, per_task, user_only };
const char* tier_name(Tier tier);

struct EventOptions {
  int frequency_hz = 99;
  uint32_t on_cpu_copy_bytes = 32 * 1024;  // user stack copied with an on-CPU sample
  uint32_t off_cpu_copy_bytes = 4096;      // and, to begin with, with a context switch
  bool off_cpu_user_chain = false;         // let the kernel walk frame pointers at every switch
  bool wakeups = true;
  bool global_pids = true;  // ours are the kernel\'s own: no PID namespace between
  bool switch_tracepoint =
      true;  // false: the context-switch event even where sched_switch can be read
  bool children = true;
  bool side_band_only = false;  // mmap, comm, fork and exit records of all CPUs, nothing else
  bool probe_switches = false;  // check that sched_switch is recorded on every CPU before using it
  std::vector<int> cpus;        // online CPUs
  size_t ring_budget_bytes = 48u << 20;  // for all rings together
  Tier first_tier = Tier::per_cpu;
};

class EventSet : public EventIds {
 public:
  // `threads` lists the target's live tids, asked for again until no new one appears (per-task
  // tiers).
  using ListThreads = std::function<std::vector<pid_t>()>;
  static Result<std::unique_ptr<EventSet>> open(os::PerfKernel& kernel, const EventOptions& options,
                                                const ListThreads& threads);

  Tier tier() const { return tier_; }
  const std::string& on_cpu_event() const { return on_cpu_event_; }
  int64_t sample_period_ns() const { return sample_period_ns_; }
  bool has_off_cpu_stacks() const { return tier_ != Tier::user_only; }
  bool has_wakeups() const { return waking_.id != 0; }
  const std::vector<model::QualityNote>& notes() const { return notes_; }
  uint64_t untracked_threads() const { return untracked_threads_; }

  std::vector<RingSource> sources();
  Result<void> enable();
  void disable();
  // Records that found their ring full, by the kernel's own count; 0 where it keeps none (before
  // 6.0). LOST records in the rings give the same number, except for losses that no later record
  // followed.
  uint64_t lost_records() const;

  // Opens the off-CPU event again with another size of stack copy, with or without the kernel's
  // walk along frame pointers. Per-CPU tier only; on failure the old event stays.
  Result<void> set_off_cpu_stacks(uint32_t copy_bytes, bool user_chain);
  bool off_cpu_user_chain() const { return options_.off_cpu_user_chain; }
  uint32_t off_cpu_copy_bytes() const { return options_.off_cpu_copy_bytes; }

  // Opens the events of a CPU again that was taken off and brought back, which ends its events for
  // good; those of threads go on by themselves. Its rings stay. Failures: a CPU that was not online
  // when the set was opened; the kernel's.
  Result<void> reopen_cpu(int cpu);

  // Whether switches are recorded with the kernel's part of the stack, which is the most expensive
  // part of the record. False only where a cheaper event was opened beside (per CPU, by
  // tracepoint).
  bool has_bare_switches() const { return tier_ == Tier::per_cpu && switch_.id != 0; }
  void record_kernel_stacks_of_switches(bool on);

  perf_event_attr bare_on_cpu_attributes() const;

  EventKind kind_of(uint64_t id) const override;
  // The threads between which an off-CPU sample switches; nullopt when the sample does not contain
  // them (then SWITCH records do).
  using Switch = SwitchTracepoint::Switch;
  std::optional<Switch> switch_of(std::span<const std::byte> raw) const {
    return switch_.parse(raw);
  }
  // The thread that a waking sample wakes; −1 when the payload is too short.
  pid_t woken_tid(std::span<const std::byte> raw) const { return waking_.parse(raw); }

 private:
  struct CpuRings {
    int cpu = 0;
    int side_fd = -1;    // owner of the side-band ring; −1: not mapped yet
    int sample_fd = -1;  // owner of the sample ring
    std::unique_ptr<Ring> side;
    std::unique_ptr<Ring> samples;
  };

  EventSet(os::PerfKernel& kernel, const EventOptions& options);
  Result<void> open_tier(Tier tier, const ListThreads& threads);
  Result<void> open_per_cpu();
  Result<void> open_per_task(const ListThreads& threads);
  Result<void> open_thread(pid_t tid);
  void close_events_from(size_t first);
  Result<void> open_one(EventKind kind, pid_t pid, CpuRings& rings);
  Result<void> attach(EventKind kind, UniqueFd fd, CpuRings& rings);
  size_t ring_bytes(bool side) const;
  bool halve_rings();
  perf_event_attr attributes(EventKind kind) const;
  void describe_switches(EventKind kind, perf_event_attr& attr) const;
  bool is_wanted(EventKind kind) const;
  Result<void> reopen_switches();
  std::vector<EventKind> kinds() const;
  void choose_on_cpu_event();
  void find_waking_tracepoint();
  bool give_up_switch_tracepoint();
  bool switches_are_complete();
  void note(std::string topic, std::string text, std::string remedy);
  void close_all();

  os::PerfKernel& kernel_;
  EventOptions options_;
  Tier tier_ = Tier::per_cpu;
  bool use_cycles_ = false;
  std::string on_cpu_event_;
  int64_t sample_period_ns_ = 0;
  WakingTracepoint waking_;
  SwitchTracepoint switch_;  // id 0: context-switch event and SWITCH records
  bool switch_refused_ = false;
  bool enabled_ = false;
  bool kernel_stacks_of_switches_ = true;
  std::vector<CpuRings> rings_;
  struct Event {
    UniqueFd fd;
    EventKind kind;
    int cpu;
  };
  std::vector<Event> events_;
  std::unordered_map<uint64_t, EventKind> kind_by_id_;
  std::vector<model::QualityNote> notes_;
  uint64_t untracked_threads_ = 0;
  uint64_t lost_by_closed_ = 0;  // by events that were replaced
  int ring_halvings_ = 0;        // how often all rings were halved to fit into locked memory
  bool rings_refused_ = false;   // the last failure was a ring's
};

}  // namespace assay::capture
