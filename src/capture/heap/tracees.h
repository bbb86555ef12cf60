// Tracees: the threads of a target that the injector has seized, and their stops.
//
// Seizing does not stop a thread. When a thread stops for a reason of its own (a signal, a clone, a
// job-control stop), it is resumed at once, as without a tracer; its signals are passed on. While
// job control stops the process, only the owned thread runs, until it is released. Only stops that
// the injector asked for are handed to it: an interrupt, or a breakpoint. Threads: one, for ptrace
// knows its tracer by thread. Failures: a thread that is gone is dropped; permission and the like
// are Errors. The destructor releases all threads.
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <set>

#include <sys/types.h>
#include <sys/user.h>

#include "base/clock.h"
#include "base/result.h"
#include "os/process/procfs.h"
#include "os/trace/traced_thread.h"

namespace assay::capture {

// A one-byte breakpoint in the target's code.
class Breakpoint {
 public:
  Breakpoint(pid_t pid, uint64_t address) : pid_(pid), address_(address) {}
  ~Breakpoint() { (void)remove(); }
  Breakpoint(const Breakpoint&) = delete;
  Breakpoint& operator=(const Breakpoint&) = delete;

  Result<void> insert();
  bool remove();                        // true when it is not there any more
  void remove_from(pid_t copy) const;   // a forked child has a copy of the code
  void forget() { inserted_ = false; }  // the code that it was in is gone
  uint64_t address() const { return address_; }

 private:
  pid_t pid_;
  uint64_t address_;
  uint8_t original_ = 0;
  bool inserted_ = false;
};

class Tracees {
 public:
  enum class Stop : uint8_t { breakpoint, interrupted, signal };
  struct Event {
    pid_t tid = 0;
    Stop stop = Stop::interrupted;
    int signal = 0;
  };

  Tracees(const os::ProcFs& proc, pid_t pid);
  ~Tracees();
  Tracees(const Tracees&) = delete;
  Tracees& operator=(const Tracees&) = delete;

  Result<bool> seize(pid_t tid);  // false: it has ended, or was born seized
  Result<void> seize_all();       // and those that are born meanwhile
  bool interrupt(pid_t tid);
  const std::set<pid_t>& seized() const { return seized_; }
  // Whether a seized thread would be told of a signal.
  bool takes_signal(pid_t tid, int signal) const;

  // The next stop that is ours; nullopt when `deadline` has passed or the target is gone.
  std::optional<Event> wait(TimeNs deadline);
  // As wait(), but signals of `mine` are handed over, too: its registers are not its own now.
  void own(pid_t tid) { owned_ = tid; }
  void watch(Breakpoint* breakpoint) { breakpoint_ = breakpoint; }
  // Stops by this signal at this address are handed over as a breakpoint's (entry_watch.h).
  void watch_entry(uint64_t address, int signal) { entry_ = {address, signal}; }
  // Set when job control stops a thread that is not owned, until the last one is let go.
  void tell_stops(bool* stopped) { tells_stops_ = stopped; }
  bool gone() const { return gone_; }
  bool is_stopped(pid_t tid) const { return stopped_.contains(tid); }
  // A trap takes SIGTRAP out of the mask of a thread that had it blocked; whether it had, when it
  // was seized.
  bool blocked_trap(pid_t tid) const { return trap_blocked_.contains(tid); }
  // Whether a breakpoint would also take the program's own handler of SIGTRAP away.
  bool breakpoints_harm() const;
  // Whether job control has stopped threads besides this one, which may then hold what it needs.
  bool others_are_stopped(pid_t tid) const;
  // Puts a thread that a breakpoint stopped back before it.
  void step_back(pid_t tid);

  bool resume(pid_t tid, os::Resume how, int signal = 0);
  // Lets a stopped thread go, with a signal that it is still to get.
  void release(pid_t tid, int signal = 0);
  // Interrupts and releases every thread that is still seized, one after another.
  void release_all();

 private:
  std::optional<Event> sort_out(pid_t tid, int status);
  void let_go_child(pid_t child);
  void let_go_stopped(const Event& event);
  bool is_ours(pid_t tid) const;
  Result<bool> try_seize(pid_t tid, long options);
  bool at_breakpoint(pid_t tid) const;
  bool at_entry(pid_t tid, int signal) const;

  const os::ProcFs& proc_;
  pid_t pid_;
  pid_t owned_ = 0;
  std::set<pid_t> seized_;
  std::map<pid_t, Event> stopped_;  // of them: stopped, handed over and not yet resumed
  std::set<pid_t> trap_blocked_;
  std::set<pid_t> children_;  // forked meanwhile; to be let go when they stop
  Breakpoint* breakpoint_ = nullptr;
  struct Entry {
    uint64_t address = 0;
    int signal = 0;
  } entry_;
  bool* tells_stops_ = nullptr;
  std::optional<timer_t> alarm_;  // makes waiting look at the clock
  bool gone_ = false;
  bool releasing_ = false;
};

// Most interrupted system calls are taken up again by the kernel. The others answer a mere stop
// with EINTR; having done nothing, they are made to begin again, unless a signal is the reason.
// `mask` is the thread's own. False: the registers stay as they are.
bool begin_call_again(pid_t pid, pid_t tid, uint64_t mask, user_regs_struct& registers);
// The same whatever signals are pending: for a thread that has no tracer to restart its call. A
// sleep begins from its start as well.
void begin_call_anew(user_regs_struct& registers);
// Whether a system call that was interrupted will go on, by the kernel or by the function above.
bool in_restartable_syscall(const user_regs_struct& registers);

}  // namespace assay::capture
