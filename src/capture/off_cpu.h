// OffCpu: switches, wake-ups and stacks of threads become Waits.
//
// In, in time order: switch-out/-in, the stack taken at a switch-out (just before it), wake-ups,
// on-CPU samples, births and deaths. Out: every interval that a thread spent off the CPU, exactly
// once, so that a thread's waits and its running time fill its life in the window. Lost records do
// not create time: a wait whose end was lost ends at the thread's next record, a wait whose stack
// was lost gets a marker, and both are counted. Threads: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "base/clock.h"
#include "model/ids.h"
#include "model/sample.h"

namespace assay::capture {

// What was known when the thread left the CPU.
struct WaitSite {
  model::StackId stack;
  uint16_t syscall = model::kNoSyscall;
  uint64_t arg = 0;
  model::FdKind fd_kind = model::FdKind::none;
  model::ThreadId owner = model::Wait::kNoOwner;  // of the lock it waits for
};

struct OffCpuCounts {
  uint64_t unpaired_switches = 0;  // in without out, or out without in
  uint64_t lost_stacks = 0;        // blocked switch-outs without their stack
};

class OffCpu {
 public:
  using Emit = std::function<void(const model::Wait&)>;

  // Switch-outs without a stack get the marker `lost_stack`; in a capture without off-CPU stacks it
  // is the marker "not sampled".
  OffCpu(TimeNs window_begin, model::StackId lost_stack, Emit emit);

  // A thread that existed when the window began, or that was first seen at `since`. Whether it ran
  // or waited is known only from its first record, or, without records, at the end. `runnable`: if
  // it was off the CPU, it waited for a CPU.
  void existing_thread(model::ThreadId thread, TimeNs since, bool runnable = false);
  bool knows(model::ThreadId thread) const { return threads_.contains(thread); }
  // The snapshot of a blocked thread, in time order with the records. Used for the open wait.
  void snapshot(model::ThreadId thread, const WaitSite& site);
  void born(model::ThreadId thread, TimeNs time);
  // The same thread under a new identity: exec made it another process.
  void began_running(model::ThreadId thread, TimeNs time);
  void exited(model::ThreadId thread, TimeNs time);

  void stack_at_switch(model::ThreadId thread, TimeNs time, const WaitSite& site);
  void switched_out(model::ThreadId thread, TimeNs time, bool preempted);
  // `queued_ns`: run-queue time by the kernel's own account, where it was read. The rest of the time
  // since the wake-up is wake-up latency.
  void switched_in(model::ThreadId thread, TimeNs time, std::optional<int64_t> queued_ns = {});
  void running_sample(model::ThreadId thread, TimeNs time);
  void woken(model::ThreadId thread, TimeNs time, model::ThreadId waker,
             model::StackId waker_stack = {});

  // How long ago the thread's wake-up was; INT64_MAX when none was seen since it last ran.
  int64_t since_wakeup(model::ThreadId thread, TimeNs now) const;

  // Closes open waits. `ran_throughout` is called for threads without any record: true if it was
  // running or ready to run, false if it waited.
  void finish(TimeNs window_end, const std::function<bool(model::ThreadId)>& ran_throughout);

  // The waits that are open at `now`, with `now` as their end; for a run that is cut off later.
  void for_each_open_wait(TimeNs now, const Emit& visit) const;

  const OffCpuCounts& counts() const { return counts_; }

 private:
  enum class State : uint8_t { unknown, running, waiting };
  struct ThreadState {
    State state = State::unknown;
    bool preempted = false;
    bool newborn = false;
    bool open_start = false;
    bool have_site = false;  // site was taken since the thread last ran
    bool site_is_snapshot = false;
    bool was_woken = false;
    TimeNs since = 0;  // when the wait began, or when it began to run
    TimeNs woken_at = 0;
    std::optional<int64_t> queued_ns;
    model::ThreadId waker = model::Wait::kNoWaker;
    model::StackId waker_stack;
    WaitSite site;
  };

  // The thread's state; null when it is not alive.
  ThreadState* find(model::ThreadId thread);
  void begin_wait(ThreadState& state, TimeNs time, bool preempted);
  void end_wait(model::ThreadId thread, ThreadState& state, TimeNs time, bool open_end);
  model::Wait make_wait(model::ThreadId thread, const ThreadState& state, TimeNs end,
                        bool open_end) const;

  TimeNs window_begin_;
  model::StackId lost_stack_;
  Emit emit_;
  std::unordered_map<model::ThreadId, ThreadState> threads_;  // living threads
  OffCpuCounts counts_;
};

}  // namespace assay::capture
