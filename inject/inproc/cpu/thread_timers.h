// ThreadTimers: one interval timer per thread of this process, each delivering a signal to its
// thread.
//
// Threads need not cooperate: a timer is made for any thread id. cover_all() covers all current
// threads and drops the timers of ended ones; cover() and uncover() are for a thread that begins
// and ends. Internally locked; not for signal handlers, except set_rhythm. Failures: a thread whose
// timer the system refuses is counted in refused().
#pragma once

#include <cstdint>

#include <time.h>

#include "inject/inproc/locks/futex_lock.h"

namespace assay::inproc {

struct TimerPlan {
  int signal = 0;
  int64_t period_ns = 0;
  bool wall_clock = false;  // timers run by wall-clock time, else by the thread's CPU time
};

// The kernel looks at CPU timers at its own tick. Between two ticks a thread uses one tick's time,
// or up to kMaxTicks where a virtual machine pauses; a thread that used more had the signal
// blocked.
int64_t kernel_tick_ns();
inline constexpr int64_t kMaxTicks = 10;

// When a timer fires: after `first_ns`, then every `every_ns`.
struct Rhythm {
  int64_t first_ns, every_ns;
};

// For a timer that cover() returned. Async-signal-safe; false: it no longer exists.
bool set_rhythm(int timer, const Rhythm& rhythm);

// From a timer's handler: the calling thread's time is sampled up to here. Async-signal-safe.
void note_thread_seen();

class ThreadTimers {
 public:
  static constexpr int kNoTimer = -1;

  bool start(const TimerPlan& plan);  // false: no memory
  void stop();                        // afterwards no timer fires; pending signals may still arrive
  void cover_all();
  // A thread that has just begun, by the plan's period or with a rhythm of its own; the kernel's
  // number of its timer, or kNoTimer.
  int cover(int tid);
  int cover(int tid, const Rhythm& rhythm);
  void uncover(int tid);
  // CPU time of threads that block the signal now, since they were covered or last seen. Amounts
  // that a few ticks explain are left out. Ending threads are counted one by one, just before they
  // end.
  int64_t unseen_ns();
  int64_t unseen_ns(int tid);  // of one that is known to block it
  uint32_t covered();          // ever, with those refused
  uint32_t refused();
  void forget();  // in a forked child, which has no timers

 private:
  struct Entry {
    int tid;  // 0 free
    int timer;
    uint32_t round;
    int64_t begin_ns;  // its CPU time when it was covered
  };
  static uint32_t slot_of(int tid);
  Entry* find(int tid);
  void see(int tid);
  void add(int tid, const Rhythm& rhythm);
  int replace(int tid, const Rhythm& rhythm);
  void remove(Entry* entry);
  Rhythm draw_rhythm();
  int64_t unseen_ns(const Entry& entry) const;
  void sweep();

  static constexpr uint32_t kSlots = 1 << 15;
  static constexpr uint32_t kMaxThreads = kSlots / 2;
  FutexLock lock_;
  TimerPlan plan_;
  bool running_ = false;
  Entry* entries_ = nullptr;
  uint32_t count_ = 0, covered_ = 0, refused_ = 0, round_ = 0, random_ = 0;
};

}  // namespace assay::inproc
