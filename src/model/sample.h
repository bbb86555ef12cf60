// Sample and Wait: the two kinds of evidence about a thread's time.
//
// A thread's waits are all intervals it spent off the CPU; between two waits it was running.
// Samples say what it did while it ran. Both use the same clock.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "model/ids.h"

namespace assay::model {

// One on-CPU sample: at `time` the thread was running `stack`; it stands for `weight_ns` of CPU
// time.
struct Sample {
  TimeNs time = 0;
  ThreadId thread;
  StackId stack;
  int64_t weight_ns = 0;
  uint16_t cpu = 0;
};

enum class WaitFlag : uint16_t {
  preempted = 1,       // lost the CPU while runnable: all of it is run-queue time
  open_start = 2,      // already waiting when the window began; starts at the window's begin
  open_end = 4,        // still waiting when the window ended; ends at the window's end
  stack_snapshot = 8,  // the stack comes from a snapshot of the blocked thread, not from its switch
  runqueue_known = 16,  // runqueue_ns was measured for this wait (its wake-up was recorded)
  new_thread = 32,      // the wait of a new thread for its first CPU
};

enum class FdKind : uint8_t {
  none = 0,  // the wait is not on a file descriptor, or its kind is not known
  file,
  pipe,
  socket_listen,
  socket_stream,
  socket_datagram,
  socket_unix,
  epoll,
  eventfd,
  timerfd,
  signalfd,
  inotify,
  device,
  io_uring,
  other,
  socket_accepted,   // a TCP connection that the target accepted
  socket_connected,  // one that the target opened
};
inline constexpr FdKind kLastFdKind = FdKind::socket_connected;

inline constexpr uint16_t kNoSyscall = 0xffff;

// One interval off the CPU, [start, start + duration).
struct Wait {
  TimeNs start = 0;
  int64_t duration_ns = 0;
  int64_t runqueue_ns = 0;  // the last part, spent runnable; whole duration when preempted
  int64_t wakeup_ns = 0;    // just before it: from the wake-up until it was on a run queue
  ThreadId thread;
  StackId stack;
  uint16_t flags = 0;
  uint16_t syscall = kNoSyscall;  // number, when the thread waited inside one
  FdKind fd_kind = FdKind::none;
  uint64_t arg = 0;            // futex address, file descriptor, or the syscall's first argument
  ThreadId waker{0xffffffff};  // the thread that ended it, if recorded and part of the target
  StackId waker_stack;         // stack of the waker at that time; empty when not known
  ThreadId owner{0xffffffff};  // the thread that held the lock when the wait began, if known
  static constexpr ThreadId kNoWaker{0xffffffff};
  static constexpr ThreadId kNoOwner{0xffffffff};

  bool has(WaitFlag flag) const { return flags & static_cast<uint16_t>(flag); }
  void set(WaitFlag flag) { flags |= static_cast<uint16_t>(flag); }
};

}  // namespace assay::model
