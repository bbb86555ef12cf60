#include "inject/inproc/thread_timers.h"

#include <csignal>

#include <sys/syscall.h>
#include <unistd.h>

#include "inject/inproc/arena.h"
#include "inject/inproc/own_threads.h"
#include "inject/inproc/profile.h"

namespace assay::inproc {
namespace {

constexpr int kNoTimer = -1;
constexpr int kTimerTag = 0x61737361;  // in si_value: this signal is ours

// The kernel's number for the CPU clock of a thread (CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED).
clockid_t cpu_clock_of(int tid) {
  return static_cast<clockid_t>(~static_cast<unsigned>(tid) << 3 | 6);
}

int make_timer(int tid, const TimerPlan& plan, int64_t first_ns) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = plan.signal;
  event.sigev_value.sival_int = kTimerTag;
  event._sigev_un._tid = tid;
  int timer = kNoTimer;
  clockid_t clock = plan.wall_clock ? CLOCK_MONOTONIC : cpu_clock_of(tid);
  if (syscall(SYS_timer_create, clock, &event, &timer) != 0) return kNoTimer;
  itimerspec spec{};
  spec.it_interval = {plan.period_ns / 1'000'000'000, plan.period_ns % 1'000'000'000};
  spec.it_value = {first_ns / 1'000'000'000, first_ns % 1'000'000'000};
  if (syscall(SYS_timer_settime, timer, 0, &spec, nullptr) == 0) return timer;
  syscall(SYS_timer_delete, timer);
  return kNoTimer;
}

}  // namespace

bool ThreadTimers::start(const TimerPlan& plan) {
  {
    Hold hold(lock_);
    unmap_pages(entries_, kSlots * sizeof(Entry));
    entries_ = static_cast<Entry*>(map_pages(kSlots * sizeof(Entry)));
    if (entries_ == nullptr) return false;
    plan_ = plan;
    count_ = refused_ = 0;
    random_ = static_cast<uint32_t>(monotonic_ns()) | 1;
    running_ = true;
  }
  cover_all();
  return true;
}

void ThreadTimers::stop() {
  Hold hold(lock_);
  if (!running_) return;
  running_ = false;
  for (uint32_t i = 0; i < kSlots; ++i)
    if (entries_[i].tid > 0 && entries_[i].timer != kNoTimer)
      syscall(SYS_timer_delete, entries_[i].timer);
}

ThreadTimers::Entry* ThreadTimers::find(int tid) {
  uint32_t slot = static_cast<uint32_t>(tid) * 2654435761U % kSlots;
  while (entries_[slot].tid != 0 && entries_[slot].tid != tid) slot = (slot + 1) % kSlots;
  return &entries_[slot];
}

void ThreadTimers::add(int tid) {
  Entry* entry = find(tid);
  if (entry->tid == tid) {
    entry->round = round_;
    return;
  }
  if (count_ >= kMaxThreads) {
    ++refused_;
    return;
  }
  // Threads that start together must not tick together.
  random_ = random_ * 1664525 + 1013904223;
  int64_t first_ns =
      1 + static_cast<int64_t>(random_ / 4294967296.0 * static_cast<double>(plan_.period_ns));
  *entry = {tid, make_timer(tid, plan_, first_ns), round_};
  ++count_;
  if (entry->timer == kNoTimer) ++refused_;
}

// Drops the timers of threads that the last round did not see. The table is made anew, which keeps
// probing short without marks for removed entries.
void ThreadTimers::sweep() {
  bool gone = false;
  for (uint32_t i = 0; i < kSlots && !gone; ++i)
    gone = entries_[i].tid != 0 && entries_[i].round != round_;
  if (!gone) return;
  auto* old = entries_;
  auto* made = static_cast<Entry*>(map_pages(kSlots * sizeof(Entry)));
  if (made == nullptr) return;
  entries_ = made;
  count_ = 0;
  for (uint32_t i = 0; i < kSlots; ++i) {
    if (old[i].tid == 0) continue;
    if (old[i].round == round_) {
      *find(old[i].tid) = old[i];
      ++count_;
    } else if (old[i].timer != kNoTimer) {
      syscall(SYS_timer_delete, old[i].timer);
    }
  }
  unmap_pages(old, kSlots * sizeof(Entry));
}

void ThreadTimers::cover_all() {
  Hold hold(lock_);
  if (!running_) return;
  ++round_;
  bool listed = for_each_thread(
      [](int tid, void* self) {
        if (!is_own_thread(tid)) static_cast<ThreadTimers*>(self)->add(tid);
      },
      this);
  if (listed) sweep();
}

void ThreadTimers::cover(int tid) {
  Hold hold(lock_);
  if (!running_) return;
  Entry* entry = find(tid);
  if (entry->tid == tid) {
    // The number of a thread that ended is in use again: its timer runs by a clock that stands
    // still.
    if (entry->timer != kNoTimer) syscall(SYS_timer_delete, entry->timer);
    entry->timer = make_timer(tid, plan_, plan_.period_ns / 2 + 1);
    entry->round = round_;
    return;
  }
  add(tid);
}

uint32_t ThreadTimers::covered() {
  Hold hold(lock_);
  return count_;
}

uint32_t ThreadTimers::refused() {
  Hold hold(lock_);
  return refused_;
}

void ThreadTimers::forget() {
  lock_.reset();
  running_ = false;
}

}  // namespace assay::inproc
