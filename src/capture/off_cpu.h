// OffCpu: switches, wake-ups and stacks of threads become Waits.
//
// In, in time order: switch-out/-in, the stack taken at a switch-out (just before it), wake-ups,
// on-CPU samples, births and deaths. Out: every interval that a thread spent off the CPU, exactly
// once, so that a thread's waits and its running time fill its life in the window. A lost record
// never invents time: a wait whose end was lost closes at the thread's next sign of life, a wait
// whose stack was lost says so, and both are counted. Threads: one owner.
#pragma once

#include <cstdint>
#include <functional>
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

  // Switch-outs without a stack get `lost_stack`, a marker; without off-CPU stacks at all it is the
  // marker that says so.
  OffCpu(TimeNs window_begin, model::StackId lost_stack, Emit emit);

  // A thread that lived when the window began, or that was first heard of at `since`; what it was
  // doing is only known from its first record, or, when it has none, at the end.
  // `runnable`: if it turns out to have been off the CPU, it waited for one.
  void existing_thread(model::ThreadId thread, TimeNs since, bool runnable = false);
  bool knows(model::ThreadId thread) const { return threads_.contains(thread); }
  // What a snapshot of a blocked thread showed, in its place in time. Used for the wait that is
  // open.
  void snapshot(model::ThreadId thread, const WaitSite& site);
  void born(model::ThreadId thread, TimeNs time);
  // The same thread under a new identity: exec made it another process.
  void began_running(model::ThreadId thread, TimeNs time);
  void exited(model::ThreadId thread, TimeNs time);

  void stack_at_switch(model::ThreadId thread, TimeNs time, const WaitSite& site);
  void switched_out(model::ThreadId thread, TimeNs time, bool preempted);
  void switched_in(model::ThreadId thread, TimeNs time);
  void running_sample(model::ThreadId thread, TimeNs time);
  void woken(model::ThreadId thread, TimeNs time, model::ThreadId waker,
             model::StackId waker_stack = {});

  // Closes what is open. `ran_throughout` is asked for threads without a single record: did it run
  // (or was it ready to run) rather than wait?
  void finish(TimeNs window_end, const std::function<bool(model::ThreadId)>& ran_throughout);

  // The waits that are open at `now`, as they would end now; for a run that is cut off later.
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
