// Truth: a test program's own measurement of its time, to compare with a profile.
//
// Every thread holds a Truth while it runs and measures its waits through it. print_truths() writes
// one JSON line per thread of this process to stdout:
//   {"pid":7,"tid":9,"name":"busy","begin_ns":…,"wall_ns":…,"cpu_ns":…,"wait_ns":…,"waits":…,
//    "queued_ns":…}
// begin_ns is CLOCK_MONOTONIC, wall_ns and wait_ns are differences of it, cpu_ns is the thread's
// CPU clock. wait_ns covers only waits that the program makes on purpose, from before the call to
// after it, so time in the run queue after a wake-up is part of it, and preemption is not. queued_ns
// is what the kernel counts as time on a run queue (schedstat). Options
// of every program: --for SECONDS (default 5), --announce (first prints {"ready":PID}). Threads:
// Truth belongs to the thread that made it; print_truths() may run while others still wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace truth {

int64_t now_ns();         // CLOCK_MONOTONIC
int64_t thread_cpu_ns();  // CLOCK_THREAD_CPUTIME_ID

struct Account;

class Truth {
 public:
  explicit Truth(const std::string& name);  // also names the thread, unless the name is empty
  ~Truth();
  Truth(const Truth&) = delete;
  Truth& operator=(const Truth&) = delete;

  // Runs a blocking call and counts it as one wait.
  template <class Call>
  auto wait(Call call) {
    WaitScope scope(*this);
    return call();
  }

 private:
  struct WaitScope {
    explicit WaitScope(Truth& owner) : truth(owner) { truth.begin_wait(); }
    ~WaitScope() { truth.end_wait(); }
    Truth& truth;
  };
  void begin_wait();
  void end_wait();

  std::shared_ptr<Account> account_;
};

void print_truths();
// In a new child of fork(): drops the parent's threads.
void forget_truths();

// Numbers by name, and flags. Wrong usage prints the options and exits 2.
class Arguments {
 public:
  Arguments(int argc, char** argv, std::map<std::string, long> defaults,
            std::vector<std::string> flags = {});
  long operator[](const std::string& name) const { return numbers_.at(name); }
  bool has(const std::string& flag) const { return set_.contains(flag); }
  double seconds() const { return seconds_; }

 private:
  std::map<std::string, long> numbers_;
  std::map<std::string, bool> set_;
  double seconds_ = 5;
};

// The end of the program's time: after --for, or at SIGTERM or SIGINT. Made first in main(), before
// any thread, because it blocks those signals everywhere and only the main thread waits for them.
class Deadline {
 public:
  explicit Deadline(const Arguments& arguments);
  explicit Deadline(double seconds);
  bool passed() const { return stop_ || now_ns() >= end_ns_; }
  int64_t end_ns() const { return end_ns_; }
  // The main thread's part: waits for the end, then passed() holds for all.
  void wait_for_end(Truth& main_thread);
  // As passed(), for a main thread that works itself and so must look for SIGTERM on its own.
  bool passed_or_signalled();
  bool signalled() const { return signalled_; }
  // A pause that ends early when the time is over; false then.
  bool sleep_until(int64_t when_ns) const;

 private:
  int64_t end_ns_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> signalled_ = false;
};

// Burns this much CPU time of the calling thread, in user mode except for a clock call every ~20
// µs.
void burn_cpu_ns(int64_t ns);
// Burns one short chunk (a few µs).
void burn_chunk();

}  // namespace truth
