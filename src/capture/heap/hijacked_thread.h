// HijackedThread: a stopped thread of the target that makes a few calls for us and is then put back
// as it was.
//
// In: a thread that stands at malloc's entry or in an interrupted, restartable system call. Saves
// its registers, vector state, signal mask and priority; blocks its signals, so that no handler of
// the program runs in between; calls below its own stack where there is room, else on one made for
// it. restore() puts everything back from a stop inside the kernel's signal code, so that an
// interrupted system call goes on as after any stop. A tracer that is killed in between leaves a
// thread that finishes the call and puts itself back (way_back.h); an interrupted call then begins
// anew. (Not so while a stack is made for it, or taken away.) Threads: the tracer's. Failures: a
// call that does not come back, a target that is gone.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "capture/heap/tracees.h"
#include "capture/heap/way_back.h"

namespace assay::capture {

class HijackedThread {
 public:
  // `landing`: unused room for landing_code(); `signal`: by which calls come back; `may_hurry`:
  // whether the thread may be put before others meanwhile.
  HijackedThread(Tracees& tracees, pid_t pid, pid_t tid, uint64_t landing, int signal,
                 bool may_hurry)
      : tracees_(tracees),
        pid_(pid),
        tid_(tid),
        landing_(landing),
        signal_(signal),
        may_hurry_(may_hurry) {}

  // Whether a stopped thread still makes a call for a tracer that was killed: it must not be taken.
  static bool is_on_its_way_back(pid_t tid);
  // `rewind_to`: where the thread is to go on when a breakpoint stopped it; 0: where it stands.
  Result<void> take(uint64_t rewind_to);
  // Results below 0 are −errno.
  Result<int64_t> syscall(int64_t number, std::initializer_list<uint64_t> arguments);
  Result<uint64_t> call(uint64_t function, std::initializer_list<uint64_t> arguments);
  // Text for a call to read; valid until the next put_text().
  Result<uint64_t> put_text(const std::string& text);
  // The target's text, for a message: at most 512 bytes, what is not plain ASCII as '?'.
  std::string read_text(uint64_t address) const;
  bool read_memory(uint64_t address, void* into, size_t size) const;
  // Everything back; the thread runs on.
  Result<void> restore();

 private:
  void plan_to_hurry();
  void hurry();
  void leave_no_interruption() const;
  bool put_landing() const;
  uint64_t blocked_meanwhile() const;
  bool use_own_stack();
  Result<void> make_stack();
  // A system call by a single step, for when there is no stack yet to come back by.
  Result<int64_t> step_syscall(int64_t number, std::initializer_list<uint64_t> arguments);
  // Goes where `registers` say, and comes back by the landing.
  Result<uint64_t> go(const user_regs_struct& registers);
  std::optional<Tracees::Event> wait_for_stop(TimeNs& deadline);
  // Runs the thread until it stops with this signal.
  Result<void> run_to(int signal, os::Resume how);

  Tracees& tracees_;
  pid_t pid_, tid_;
  uint64_t landing_;
  int signal_;
  ThreadState saved_;
  ReturnFrame frame_;
  uint64_t stack_ = 0;      // low end of what calls use
  bool own_stack_ = false;  // it is the thread's own, below what it uses
  bool taken_ = false;
  bool may_hurry_;
  bool hurries_ = false;
};

}  // namespace assay::capture
