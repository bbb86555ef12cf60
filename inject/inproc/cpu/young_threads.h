// Young threads: samples the CPU time of short-lived threads, which an ordinary timer would mostly
// miss.
//
// The kernel looks at a thread's CPU timers at its own tick (every 4 ms, say), so a thread that
// ends before the first tick leaves no sample, and the end of a thread's life is sampled more often
// than its beginning. A thread that begins while a profile runs is therefore signalled at every
// tick, until it has used kYoungNs. Ticks hit threads, and parts of a thread's life, in proportion
// to the CPU time spent there, so a random fraction of the ticks is sampled, independent of the
// thread. The difference to the CPU time that was really used (up to each tick, and the rest when a
// thread ends) is kept in one account for all young threads and slowly corrected. So the total is
// right, and on average its distribution among the threads is right, too.
//
// OwedTime is plain arithmetic. The rest is about the calling thread; young_tick is for its signal
// handler, the others are not.
#pragma once

#include <atomic>
#include <cstdint>

namespace assay::inproc {

// The CPU time for which a thread is young: after it, the unsampled rest after the last tick is at
// most 2 % of a thread's time.
inline constexpr int64_t kYoungNs = 100'000'000;

// CPU time that is not yet represented by samples; below 0: more samples than CPU time. Lock-free;
// any thread, any context.
class OwedTime {
 public:
  void clear() { owed_ns_.store(0); }
  void add(int64_t ns) { owed_ns_.fetch_add(ns, std::memory_order_relaxed); }

  struct Rate {
    int64_t period_ns;  // what a sample stands for
    int64_t tick_ns;    // CPU time between two ticks
  };
  // How many samples to take at a tick that brings `ns` of new time; `random`: 64 uniform bits. On
  // average as many as correspond to the time between two ticks, and a small part of the owed time.
  // Small, because owed time arises when threads begin and end: repaid at once, it would go to the
  // early part of their lives.
  int64_t take(int64_t ns, const Rate& rate, uint64_t random);
  int64_t owed_ns() const { return owed_ns_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> owed_ns_ = 0;
};

// A profile begins: threads of an earlier one are no longer young.
void start_young_threads(int64_t period_ns);

// The calling thread is young from now on; `is_new`: all of its CPU time belongs to this profile.
// False: it has used too much to be young (and is known from now on).
bool enter_young_thread(bool is_new);
// Whether this profile has seen the calling thread enter.
bool is_known_thread();
// The timer that signals it (the kernel's id), needed to turn it into an ordinary one.
void set_young_timer(int timer);

struct YoungTick {
  bool is_young = false;  // false: this thread's timer is an ordinary one
  bool is_grown = false;  // it has been young for long enough
  int timer = -1;         // see set_young_timer
  int64_t samples = 0;    // to take here
  uint64_t random = 0;    // 64 uniform bits, when grown
};
YoungTick young_tick();
// The calling thread's timer is an ordinary one from now on. For its signal handler, too.
void end_youth();

// The calling thread ends: its time since the last tick is owed. `signal_is_blocked`: the thread
// could not be sampled, and its time must not go to other threads. False: it is no longer young.
bool leave_young_thread(bool signal_is_blocked);

// CPU time of this profile's young threads that was spent with the signal blocked.
int64_t unseen_young_ns();

}  // namespace assay::inproc
