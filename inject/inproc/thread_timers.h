// ThreadTimers: one interval timer per thread of this process, each delivering a signal to its
// thread.
//
// Threads need not cooperate: a timer is made for any thread id. cover_all() covers what runs now
// and drops timers of threads that ended; cover() covers one new thread. Internally locked; not for
// signal handlers. Failures: a thread whose timer the system refuses is counted in refused().
#pragma once

#include <cstdint>

#include <time.h>

#include "inject/inproc/futex_lock.h"

namespace assay::inproc {

struct TimerPlan {
  int signal = 0;
  int64_t period_ns = 0;
  bool wall_clock = false;  // every thread by the clock on the wall, else by its own CPU time
};

class ThreadTimers {
 public:
  bool start(const TimerPlan& plan);  // false: no memory
  void stop();  // afterwards no timer fires; signals on their way may still arrive
  void cover_all();
  void cover(int tid);
  uint32_t covered();
  uint32_t refused();
  void forget();  // in a forked child: timers do not come along

 private:
  struct Entry {
    int tid;  // 0 free
    int timer;
    uint32_t round;
  };
  Entry* find(int tid);
  void add(int tid);
  void sweep();

  static constexpr uint32_t kSlots = 1 << 15;
  static constexpr uint32_t kMaxThreads = kSlots / 2;
  FutexLock lock_;
  TimerPlan plan_;
  bool running_ = false;
  Entry* entries_ = nullptr;
  uint32_t count_ = 0, refused_ = 0, round_ = 0, random_ = 0;
};

}  // namespace assay::inproc
