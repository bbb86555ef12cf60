// Recording: the consumer side of a running capture. Records in time order become samples and waits
// in the sink.
//
// In: batches of the RingReader. Out: samples, waits and losses in the sink; their stacks are built
// on the way (StackBuilder), and waits get the place and the lock that they waited at (WaitSites).
// What a wait was for is decided later, by analysis. It also keeps Tasks and AddressSpaces up to
// date. Threads: one thread, the consumer; counts() and end_window() from any. Failures: none;
// records that were lost or are malformed are counted as losses.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "capture/off_cpu.h"
#include "capture/perf/ordered_records.h"
#include "evidence/bpf_evidence.h"
#include "evidence/data_names.h"
#include "evidence/hot_source.h"
#include "evidence/recorded_events.h"
#include "evidence/sink.h"
#include "evidence/stacks/address_spaces.h"
#include "evidence/stacks/stack_builder.h"
#include "evidence/tasks.h"
#include "evidence/wait_sites.h"

namespace assay::evidence {

struct RecordingCounts {
  std::atomic<uint64_t> samples{0};
  std::atomic<uint64_t> waits{0};
  std::atomic<uint64_t> lost{0};  // records, by the kernel and by us
};

class Recording {
 public:
  struct Parts {
    const os::ProcFs& proc;
    const RecordedEvents& events;
    AddressSpaces& spaces;
    unwind::Unwinder& unwinder;
    StackBuilder& stacks;
    WaitSites& sites;
    Tasks& tasks;
    Sink& sink;
    HotSource& hot_source;
    DataNames& data_names;
    // Of the BPF backend; null without.
    capture::BpfPrograms* bpf = nullptr;
    symbol::Symbolizer* symbolizer = nullptr;
  };
  Recording(const Parts& parts, TimeNs window_begin);

  // Threads that lived when the window began. What they are blocked in is looked at by
  // take_first_snapshots(), in slices, since a target may have thousands.
  void add_existing_threads();
  void take_first_snapshots(int64_t slice_ns);
  void consume(capture::Batch batch);
  // Nothing after this time counts; from any thread.
  void end_window(TimeNs window_end) { window_end_ = window_end; }
  // Takes what is left, up to the end of the window.
  void finish(TimeNs window_end);
  // Stacks of threads that are blocked now, for waits that have none (user-only capture).
  void snapshot_blocked_threads();

  // Context switches recorded so far, of the target or not.
  uint64_t switches() const { return switches_; }
  const RecordingCounts& counts() const { return counts_; }
  // Times up to here are complete in the sink.
  TimeNs complete_until() const { return records_.released_until(); }
  std::vector<model::Wait> open_waits();
  const BpfEvidence* bpf_evidence() const { return bpf_.get(); }
  // Records were lost: looks for threads that were not announced and drops those that are gone.
  void resynchronise(TimeNs now);
  // A CPU ran without events: so many samples are missing there. Any thread.
  void add_uncovered(int cpu, TimeNs time, uint64_t samples);

 private:
  void handle(std::span<const std::byte> bytes);
  void handle_sample(const capture::RecordHead& head, capture::SampleRecord& sample);
  void handle_on_cpu(const capture::RecordHead& head, capture::SampleRecord& sample);
  void handle_off_cpu(const capture::RecordHead& head, capture::SampleRecord& sample);
  void handle_switch(const capture::RecordHead& head, const capture::SwitchRecord& record);
  void handle_fork(const capture::RecordHead& head, const capture::ForkRecord& fork);
  void handle_exit(const capture::RecordHead& head, const capture::ExitRecord& exit);
  void handle_comm(const capture::RecordHead& head, const capture::CommRecord& comm);
  void count_losses(const capture::Batch& batch);
  void add_loss(model::LossKind kind, int cpu, TimeNs time, uint64_t count);
  void take_snapshot(model::ThreadId thread, pid_t pid, pid_t tid);
  void read_registers();
  model::UserRegisters registers_at(const os::ThreadSnapshot& snapshot, pid_t tid) const;
  void apply_snapshots(TimeNs until);
  bool is_repeated(const capture::RecordHead& head);
  TimeNs switch_time(const capture::RecordHead& head) const;
  // The target's thread behind a record; nullopt when it is not the target's.
  std::optional<Task> task_of(const capture::RecordHead& head);
  bool ran_throughout(model::ThreadId thread) const;
  bool in_window(TimeNs time) const { return time >= window_begin_ && time <= window_end_; }

  Parts parts_;
  TimeNs window_begin_;
  std::atomic<TimeNs> window_end_ = INT64_MAX;
  uint64_t told_losses_ = 0;  // by the rings themselves
  uint64_t switches_ = 0;
  capture::OrderedRecords records_;
  capture::OffCpu off_cpu_;
  std::unique_ptr<BpfEvidence> bpf_;
  RecordingCounts counts_;
  struct TimedSite {
    TimeNs time = 0;
    model::ThreadId thread;
    capture::WaitSite site;
  };
  std::unordered_map<pid_t, capture::bpf::raw_regs> registers_;  // at the start, while it is needed
  std::deque<pid_t> unseen_;  // tids whose first snapshot is still to be taken
  // When the CPU last began to switch: the kernel's own accounting changes over there, a moment
  // before the switch records are written.
  struct SwitchBegin {
    TimeNs time = 0;
    pid_t tid = -1;
  };
  std::vector<SwitchBegin> switch_began_;  // by CPU
  std::deque<TimedSite> snapshots_;  // taken, and waiting for their place in the stream of records
  struct StartState {
    pid_t pid = 0;
    pid_t tid = 0;
    int64_t run_ns = 0;
  };
  std::unordered_map<model::ThreadId, StartState> at_start_;
};

}  // namespace assay::evidence
