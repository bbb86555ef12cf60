// Consumer: the thread that turns drained batches into samples and waits.
//
// Between batches it publishes which processes and threads live, notes waits that are still open,
// reads /proc again after a loss, and decides anew how much of each stack is copied. From `start`
// to `join` only this thread may use the tasks, the address spaces and the stacks; `close_events`
// may be called meanwhile, from any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "capture/perf/event_set.h"
#include "capture/perf/ring_reader.h"
#include "evidence/recording.h"
#include "evidence/sink.h"
#include "evidence/stacks/stack_policy.h"
#include "session/heap/heap_capture.h"
#include "session/record/bpf_backend.h"
#include "session/record/cpu_cover.h"
#include "session/record/live_tasks_board.h"
#include "unwind/unwinder.h"

namespace assay::session {

class Consumer {
 public:
  struct Parts {
    capture::RingReader& reader;
    capture::EventSet& events;
    BpfBackend* bpf;  // null: perf events alone
    evidence::Recording& recording;
    evidence::Tasks& tasks;
    evidence::StackPolicy& stack_policy;
    evidence::StackBuilder& stacks;
    unwind::Unwinder& unwinder;
    evidence::Sink& sink;
    HeapCapture* heap;  // null: allocations are not sampled
    std::unique_ptr<os::CpuWatch> cpus;
  };

  Consumer(Parts parts, TimeNs window_begin);

  void start();
  void join();  // after the reader was stopped; nothing when it was never started
  void close_events(TimeNs window_end);

  void expect_no_target() {
    launched_gone_ = true;
  }  // the command has ended: look whether all have
  bool target_gone() const { return target_gone_; }
  TimeNs complete_until() const { return complete_until_; }
  capture::LiveTasks live_tasks() const { return live_.read(); }

 private:
  void consume();
  void keep_house(TimeNs now);
  void resynchronise_after_loss(TimeNs now);
  void choose_stacks(TimeNs now);
  void look_at_cpus(TimeNs now);
  Result<void> reopen_cpu(int cpu);
  void publish_live_tasks();

  Parts parts_;
  std::thread thread_;
  LiveTasksBoard live_;
  std::atomic<TimeNs> complete_until_;
  std::atomic<bool> target_gone_{false};
  std::atomic<bool> launched_gone_{false};
  std::mutex events_mutex_;  // this thread reopens events, the end of the window closes them
  bool events_closed_ = false;
  CpuCover cover_;  // with the events
  TimeNs next_snapshot_ = 0;
  TimeNs next_publish_ = 0;
  TimeNs next_policy_ = 0;
  TimeNs next_switch_tick_ = 0;
  TimeNs next_cpu_look_ = 0;
  TimeNs next_open_waits_ = 0;
  TimeNs next_resync_ = 0;
  uint64_t lost_at_resync_ = 0;
  int resyncs_due_ = 0;
};

}  // namespace assay::session
