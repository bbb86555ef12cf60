#include "inject/inproc/cpu/thread_timers.h"

#include <algorithm>
#include <atomic>
#include <csignal>

#include <sys/syscall.h>
#include <unistd.h>

#include "inject/inproc/lifecycle/arena.h"
#include "inject/inproc/cpu/own_threads.h"
#include "inject/inproc/write/profile.h"

namespace assay::inproc {
namespace {

constexpr int kTimerTag = 0x61737361;  // in si_value: this signal is ours

// The kernel's number for the CPU clock of a thread (CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED).
clockid_t cpu_clock_of(int tid) {
  return static_cast<clockid_t>(~static_cast<unsigned>(tid) << 3 | 6);
}

int64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// By thread id, so that handlers need no shared table: the id, and the thread's CPU time in
// microseconds. Two ids that share a place (32,768 apart) overwrite each other.
constexpr uint32_t kSeenPlaces = 1 << 15;
constexpr int kTimeBits = 42;
std::atomic<uint64_t> seen[kSeenPlaces];

std::atomic<uint64_t>& seen_place(int tid) {
  return seen[static_cast<uint32_t>(tid) % kSeenPlaces];
}

// 0: not yet.
int64_t last_seen_ns(int tid) {
  uint64_t word = seen_place(tid).load(std::memory_order_relaxed);
  if (word >> kTimeBits != static_cast<uint64_t>(tid)) return 0;
  return static_cast<int64_t>(word & ((uint64_t{1} << kTimeBits) - 1)) * 1'000;
}

// It belongs to an ended thread that had the same id.
void forget_seen(int tid) {
  if (last_seen_ns(tid) != 0) seen_place(tid).store(0, std::memory_order_relaxed);
}

timespec to_timespec(int64_t ns) {
  return {ns / 1'000'000'000, ns % 1'000'000'000};
}

int make_timer(int tid, const TimerPlan& plan, const Rhythm& rhythm) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = plan.signal;
  event.sigev_value.sival_int = kTimerTag;
  event._sigev_un._tid = tid;
  int timer = ThreadTimers::kNoTimer;
  clockid_t clock = plan.wall_clock ? CLOCK_MONOTONIC : cpu_clock_of(tid);
  if (syscall(SYS_timer_create, clock, &event, &timer) != 0) return ThreadTimers::kNoTimer;
  if (set_rhythm(timer, rhythm)) return timer;
  syscall(SYS_timer_delete, timer);
  return ThreadTimers::kNoTimer;
}

}  // namespace

int64_t kernel_tick_ns() {
  timespec tick{};
  clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
  return tick.tv_sec * 1'000'000'000 + tick.tv_nsec;
}

bool set_rhythm(int timer, const Rhythm& rhythm) {
  itimerspec spec{to_timespec(rhythm.every_ns), to_timespec(rhythm.first_ns)};
  return syscall(SYS_timer_settime, timer, 0, &spec, nullptr) == 0;
}

void note_thread_seen() {
  int tid = current_tid();
  auto us = static_cast<uint64_t>(read_clock(CLOCK_THREAD_CPUTIME_ID) / 1'000);
  uint64_t time = us & ((uint64_t{1} << kTimeBits) - 1);
  seen_place(tid).store(static_cast<uint64_t>(tid) << kTimeBits | time, std::memory_order_relaxed);
}

bool ThreadTimers::start(const TimerPlan& plan) {
  {
    Hold hold(lock_);
    unmap_pages(entries_, kSlots * sizeof(Entry));
    entries_ = static_cast<Entry*>(map_pages(kSlots * sizeof(Entry)));
    if (entries_ == nullptr) return false;
    plan_ = plan;
    count_ = covered_ = refused_ = 0;
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

uint32_t ThreadTimers::slot_of(int tid) {
  return static_cast<uint32_t>(tid) * 2654435761U % kSlots;
}

ThreadTimers::Entry* ThreadTimers::find(int tid) {
  uint32_t slot = slot_of(tid);
  while (entries_[slot].tid != 0 && entries_[slot].tid != tid) slot = (slot + 1) % kSlots;
  return &entries_[slot];
}

// Timers of threads that start together must not fire together.
Rhythm ThreadTimers::draw_rhythm() {
  random_ = random_ * 1664525 + 1013904223;
  auto phase_ns =
      static_cast<int64_t>(random_ / 4294967296.0 * static_cast<double>(plan_.period_ns));
  return {1 + phase_ns, plan_.period_ns};
}

void ThreadTimers::add(int tid, const Rhythm& rhythm) {
  if (count_ >= kMaxThreads) {
    ++refused_;
    return;
  }
  Entry* entry = find(tid);
  forget_seen(tid);
  int64_t begin_ns = read_clock(cpu_clock_of(tid));
  *entry = {tid, make_timer(tid, plan_, rhythm), round_, begin_ns};
  ++count_;
  ++covered_;
  if (entry->timer == kNoTimer) ++refused_;
}

// Later entries move up, so that a search past it still finds them.
void ThreadTimers::remove(Entry* entry) {
  if (entry->timer != kNoTimer) syscall(SYS_timer_delete, entry->timer);
  --count_;
  auto hole = static_cast<uint32_t>(entry - entries_);
  for (uint32_t at = (hole + 1) % kSlots; entries_[at].tid != 0; at = (at + 1) % kSlots) {
    uint32_t home = slot_of(entries_[at].tid);
    if ((at - home) % kSlots < (at - hole) % kSlots) continue;
    entries_[hole] = entries_[at];
    hole = at;
  }
  entries_[hole] = {};
}

// Drops the timers of threads that the last round did not see. The table is rebuilt, which keeps
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

void ThreadTimers::see(int tid) {
  if (is_own_thread(tid)) return;
  Entry* entry = find(tid);
  if (entry->tid == tid)
    entry->round = round_;
  else
    add(tid, draw_rhythm());
}

void ThreadTimers::cover_all() {
  Hold hold(lock_);
  if (!running_) return;
  ++round_;
  bool listed = for_each_thread(
      [](int tid, void* self) { static_cast<ThreadTimers*>(self)->see(tid); }, this);
  if (listed) sweep();
}

int ThreadTimers::replace(int tid, const Rhythm& rhythm) {
  // Seen already, or the id of an ended thread is in use again: the old timer is on a clock that no
  // longer runs.
  Entry* entry = find(tid);
  if (entry->tid == tid) remove(entry);
  add(tid, rhythm);
  entry = find(tid);
  return entry->tid == tid ? entry->timer : kNoTimer;
}

int ThreadTimers::cover(int tid) {
  Hold hold(lock_);
  return running_ ? replace(tid, draw_rhythm()) : kNoTimer;
}

int ThreadTimers::cover(int tid, const Rhythm& rhythm) {
  Hold hold(lock_);
  return running_ ? replace(tid, rhythm) : kNoTimer;
}

void ThreadTimers::uncover(int tid) {
  Hold hold(lock_);
  if (!running_) return;
  Entry* entry = find(tid);
  if (entry->tid == tid) remove(entry);
}

int64_t ThreadTimers::unseen_ns(const Entry& entry) const {
  if (plan_.wall_clock || entry.timer == kNoTimer) return 0;
  int64_t since_ns = std::max(entry.begin_ns, last_seen_ns(entry.tid));
  int64_t ns = read_clock(cpu_clock_of(entry.tid)) - since_ns;
  return ns > plan_.period_ns + kMaxTicks * kernel_tick_ns() ? ns : 0;
}

int64_t ThreadTimers::unseen_ns() {
  Hold hold(lock_);
  int64_t sum_ns = 0;
  for (uint32_t i = 0; running_ && i < kSlots; ++i) {
    if (entries_[i].tid <= 0) continue;
    // The signal mask is read for few threads: a thread that can be signalled was sampled recently.
    int64_t ns = unseen_ns(entries_[i]);
    if (ns > 0 && thread_blocks(entries_[i].tid, plan_.signal)) sum_ns += ns;
  }
  return sum_ns;
}

int64_t ThreadTimers::unseen_ns(int tid) {
  Hold hold(lock_);
  if (!running_) return 0;
  const Entry* entry = find(tid);
  return entry->tid == tid ? unseen_ns(*entry) : 0;
}

uint32_t ThreadTimers::covered() {
  Hold hold(lock_);
  return covered_;
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
