#include "capture/off_cpu.h"

#include <algorithm>

namespace assay::capture {

using model::ThreadId;
using model::Wait;
using model::WaitFlag;

OffCpu::OffCpu(TimeNs window_begin, model::StackId lost_stack, Emit emit)
    : window_begin_(window_begin), lost_stack_(lost_stack), emit_(std::move(emit)) {}

OffCpu::ThreadState* OffCpu::find(ThreadId thread) {
  auto it = threads_.find(thread);
  return it == threads_.end() ? nullptr : &it->second;
}

void OffCpu::existing_thread(ThreadId thread, TimeNs since, bool runnable) {
  ThreadState& state = threads_[thread] = ThreadState{};
  state.preempted = runnable;
  state.since = std::max(since, window_begin_);
}

void OffCpu::snapshot(ThreadId thread, const WaitSite& site) {
  ThreadState* state = find(thread);
  if (state == nullptr || state->have_site || state->state == State::running) return;
  state->site = site;
  state->have_site = true;
  state->site_is_snapshot = true;
}

void OffCpu::born(ThreadId thread, TimeNs time) {
  ThreadState& state = threads_[thread] = ThreadState{};
  begin_wait(state, std::max(time, window_begin_), true);
  state.newborn = true;
}

void OffCpu::began_running(ThreadId thread, TimeNs time) {
  ThreadState& state = threads_[thread] = ThreadState{};
  state.state = State::running;
  state.since = time;
}

void OffCpu::exited(ThreadId thread, TimeNs time) {
  ThreadState* state = find(thread);
  if (state == nullptr) return;
  if (state->state == State::waiting) end_wait(thread, *state, time, false);
  threads_.erase(thread);
}

void OffCpu::stack_at_switch(ThreadId thread, TimeNs time, const WaitSite& site) {
  running_sample(thread,
                 time);  // it was running until this switch: closes a wait whose end was lost
  ThreadState* state = find(thread);
  if (state == nullptr) return;
  state->site = site;
  state->have_site = true;
  state->site_is_snapshot = false;
}

void OffCpu::switched_out(ThreadId thread, TimeNs time, bool preempted) {
  ThreadState* state = find(thread);
  if (state == nullptr) return;
  if (state->state == State::waiting) {
    // The switch-in between was lost, and no sample shows when it was: the earlier wait ends here.
    ++counts_.unpaired_switches;
    end_wait(thread, *state, time, false);
    state->have_site = false;
    state->was_woken = false;
  }
  // It ran until now, so a snapshot of the blocked thread belongs to an earlier wait.
  if (state->site_is_snapshot) state->have_site = false;
  begin_wait(*state, time, preempted);
}

// A wake-up can overtake the switch-out (woken while going to sleep), so it is not cleared here but
// when the thread begins to run.
void OffCpu::begin_wait(ThreadState& state, TimeNs time, bool preempted) {
  state.state = State::waiting;
  state.since = time;
  state.preempted = preempted;
  state.newborn = false;
  state.open_start = false;
}

void OffCpu::switched_in(ThreadId thread, TimeNs time, std::optional<int64_t> queued_ns) {
  ThreadState* state = find(thread);
  if (state == nullptr) return;
  if (state->state == State::unknown) {
    state->state = State::waiting;
    state->open_start = true;
  }
  if (state->state == State::running) ++counts_.unpaired_switches;
  state->queued_ns = queued_ns;
  if (state->state == State::waiting) end_wait(thread, *state, time, false);
  state->queued_ns.reset();
  state->state = State::running;
  state->have_site = false;
  state->was_woken = false;
}

void OffCpu::running_sample(ThreadId thread, TimeNs time) {
  ThreadState* state = find(thread);
  if (state == nullptr) return;
  if (state->state == State::unknown) {
    state->state = State::running;
    state->have_site = false;
  } else if (state->state == State::waiting && time > state->since) {
    ++counts_.unpaired_switches;
    switched_in(thread, time);
  }
}

void OffCpu::woken(ThreadId thread, TimeNs time, ThreadId waker, model::StackId waker_stack) {
  ThreadState* state = find(thread);
  if (state == nullptr || state->was_woken) return;
  state->was_woken = true;
  state->woken_at = time;
  state->waker = waker;
  state->waker_stack = waker_stack;
}

int64_t OffCpu::since_wakeup(ThreadId thread, TimeNs now) const {
  auto it = threads_.find(thread);
  return it == threads_.end() || !it->second.was_woken ? INT64_MAX : now - it->second.woken_at;
}

Wait OffCpu::make_wait(ThreadId thread, const ThreadState& state, TimeNs end, bool open_end) const {
  Wait wait;
  wait.thread = thread;
  wait.start = state.since;
  wait.duration_ns = std::max<TimeNs>(0, end - state.since);
  if (state.preempted) {
    wait.set(WaitFlag::preempted);
    wait.runqueue_ns = wait.duration_ns;
  } else if (state.was_woken) {
    wait.set(WaitFlag::runqueue_known);
    int64_t since_woken = std::clamp<TimeNs>(end - state.woken_at, 0, wait.duration_ns);
    wait.runqueue_ns = std::clamp<int64_t>(state.queued_ns.value_or(since_woken), 0, since_woken);
    wait.wakeup_ns = since_woken - wait.runqueue_ns;
    wait.waker = state.waker;
    wait.waker_stack = state.waker_stack;
  } else if (state.queued_ns) {
    wait.set(WaitFlag::runqueue_known);
    wait.runqueue_ns = std::clamp<int64_t>(*state.queued_ns, 0, wait.duration_ns);
  }
  if (state.newborn) wait.set(WaitFlag::new_thread);
  if (state.open_start) wait.set(WaitFlag::open_start);
  if (open_end) wait.set(WaitFlag::open_end);
  if (state.have_site) {
    wait.stack = state.site.stack;
    if (state.site_is_snapshot) wait.set(WaitFlag::stack_snapshot);
    if (!state.preempted) {  // a preempted thread waits for a CPU, not in its system call
      wait.syscall = state.site.syscall;
      wait.arg = state.site.arg;
      wait.fd_kind = state.site.fd_kind;
      wait.owner = state.site.owner;
    }
  } else if (!state.newborn) {
    wait.stack = lost_stack_;
  }
  return wait;
}

void OffCpu::end_wait(ThreadId thread, ThreadState& state, TimeNs time, bool open_end) {
  if (!state.have_site && !state.newborn) ++counts_.lost_stacks;
  emit_(make_wait(thread, state, time, open_end));
}

void OffCpu::for_each_open_wait(TimeNs now, const Emit& visit) const {
  for (const auto& [thread, state] : threads_) {
    if (state.state == State::running || state.since >= now) continue;
    Wait wait = make_wait(thread, state, now, true);
    if (state.state == State::unknown) wait.set(WaitFlag::open_start);
    visit(wait);
  }
}

void OffCpu::finish(TimeNs window_end, const std::function<bool(ThreadId)>& ran_throughout) {
  for (auto& [thread, state] : threads_) {
    if (state.state == State::unknown && !ran_throughout(thread)) {
      state.state = State::waiting;
      state.open_start = true;
    }
    if (state.state == State::waiting) end_wait(thread, state, window_end, true);
  }
  threads_.clear();
}

}  // namespace assay::capture
