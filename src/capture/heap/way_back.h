// How a thread that makes a call for us gets back to its own work, also when its tracer was killed.
//
// The call returns to the landing: a few instructions in the unused end of a page of the target's
// code. They store the call's result and unblock one signal, which was sent to the thread before
// and which programs ignore by default. Then they return as from a signal handler: rt_sigreturn,
// with a frame like those of the kernel. If there is a tracer, it sees the signal and takes the
// thread before that return. If there is none, the signal has no effect, the thread gets its old
// priority, and the frame restores registers, vector state and signal mask. So a tracer may be
// killed at any moment. Pure. x86-64.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sys/user.h>

namespace assay::capture {

inline constexpr size_t kLandingBytes = 72;
// Offsets in it: a system call to be made, where functions return to, where the signal comes.
inline constexpr uint64_t kLandingSyscall = 0, kLandingReturn = 2, kLandingStop = 35;
const std::array<uint8_t, kLandingBytes>& landing_code();

// How a thread is scheduled, as the kernel lays it out.
struct Scheduling {
  uint32_t size = sizeof(Scheduling);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t slice_ns = 0, deadline_ns = 0, period_ns = 0;
};
static_assert(sizeof(Scheduling) == 48);

struct ThreadState {
  user_regs_struct registers{};
  std::vector<uint8_t> vectors;          // xstate, as ptrace tells it
  uint64_t mask = 0;                     // blocked signals
  std::optional<Scheduling> scheduling;  // none: not changed meanwhile
};

// What must stand at `at`, up to where it ends, while a call is made. `at` is the stack pointer of
// a called function, and after the landing the place of its result.
struct ReturnFrame {
  uint64_t at = 0;
  std::vector<uint8_t> bytes;
};
// `top`: the frame lies below. `while_landing`: what is blocked until the frame is returned from.
ReturnFrame make_return_frame(const ThreadState& state, uint64_t while_landing, uint64_t return_to,
                              uint64_t top);

}  // namespace assay::capture
