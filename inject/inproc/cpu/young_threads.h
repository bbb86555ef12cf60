// Young threads: CPU time that a timer of the thread's own would mostly miss.
//
// The kernel looks at a thread's CPU timers at its own tick (every 4 ms, say), so a thread that
// ends before the tick that would have seen its timer leaves no sample, and what a thread does last
// is seen more often than what it does first. A thread that begins while a profile runs is
// therefore signalled at every tick that it meets, until it has used kYoungNs. Ticks meet threads,
// and places in a thread's life, in proportion to the CPU time spent there, so one tick in so many
// is sampled, by chance and whoever it meets. How far that is from the CPU time that was really
// used is kept in one account for all young threads (what they used up to each tick, and what was
// left when they ended), and slowly evened out: the total is right, and so is, on average, who gets
// it.
//
// OwedTime is plain arithmetic. The rest is about the calling thread; young_tick is for its signal
// handler, the others are not.
#pragma once

#include <atomic>
#include <cstdint>

namespace assay::inproc {

// How much CPU time a thread is young for: after it, what the last tick leaves open is 2 % of a
// thread's time at most.
inline constexpr int64_t kYoungNs = 100'000'000;

// CPU time that no sample stands for yet; below 0: samples that no CPU time stands for yet.
// Lock-free; any thread, any context.
class OwedTime {
 public:
  void clear() { owed_ns_.store(0); }
  void add(int64_t ns) { owed_ns_.fetch_add(ns, std::memory_order_relaxed); }

  struct Rate {
    int64_t period_ns;  // what a sample stands for
    int64_t tick_ns;    // CPU time between two ticks
  };
  // How many samples to take at a tick that brings `ns` of new time; `random`: 64 uniform bits. On
  // average as many as the time between two ticks is worth, and a small part of what was owed
  // before. Small, because what is owed follows the threads' beginnings and ends: repaid at once,
  // it would be repaid early in their lives.
  int64_t take(int64_t ns, const Rate& rate, uint64_t random);
  int64_t owed_ns() const { return owed_ns_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> owed_ns_ = 0;
};

// A profile begins: threads of an earlier one are young no longer.
void start_young_threads(int64_t period_ns);

// The calling thread is young from now on; `is_new`: all that it has used is this profile's. False:
// it has used too much for that (and is known from now on).
bool enter_young_thread(bool is_new);
// Whether this profile has seen the calling thread enter.
bool is_known_thread();
// The timer that signals it (the kernel's number), for whoever makes it an ordinary one.
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

// The calling thread ends: what it used since its last tick is owed. `signal_is_blocked`: nobody
// could look at it, and others shall not get its time. False: it is young no longer.
bool leave_young_thread(bool signal_is_blocked);

// CPU time of this profile's young threads that was spent with the signal blocked.
int64_t unseen_young_ns();

}  // namespace assay::inproc
