#include "inject/preload/attach.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include <sys/syscall.h>
#include <time.h>

#include "inject/core/stack_walk.h"
#include "inject/core/syscalls.h"
#include "inject/preload/attach_internal.h"
#include "inject/preload/channel_writer.h"
#include "inject/preload/hooks/dlopen_hook.h"
#include "inject/preload/forks.h"
#include "inject/preload/heap_channel.h"
#include "inject/preload/heap_sampler.h"
#include "inject/preload/tables/live_table.h"
#include "inject/preload/hooks/mmap_hooks.h"
#include "inject/preload/hooks/operator_hooks.h"
#include "inject/preload/hooks/operator_new.h"
#include "inject/preload/hooks/real_allocator.h"
#include "inject/preload/hooks/slot_patcher.h"
#include "inject/preload/thread_state.h"

namespace assay::inject {

namespace {

constexpr uint64_t kSettlingNs =
    3'000'000'000;  // how long a running call of the dynamic linker may still bind a slot
constexpr uint64_t kRescanNs = 200'000'000;
constexpr int kNoWaitMs = 0, kWaitMs = 50, kForkWaitMs = 1000;

std::atomic<bool> is_changing{false};  // one attacher, detacher or rescan at a time
std::atomic<bool> is_attached{false};  // slots are patched
std::atomic<uint64_t> next_rescan_ns{0}, settled_ns{0};
HookList operator_hooks{nullptr, 0};

uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

std::atomic<int> forking{0};  // threads that are about to fork: they have priority

// False: it could not be taken in that time. A thread that forks has priority.
bool take_changing(int wait_ms, bool to_fork = false) {
  constexpr long kPauseNs = 100'000;
  for (long left = wait_ms * (1'000'000 / kPauseNs);; --left) {
    bool is_my_turn = to_fork || forking.load(std::memory_order_acquire) == 0;
    if (is_my_turn && !is_changing.exchange(true, std::memory_order_acquire)) return true;
    if (left <= 0) return false;
    // Not nanosleep: it would replace the system call that the kernel is to restart on an attached
    // thread. Set again each time, because the kernel writes the remaining time into it.
    timespec pause{0, kPauseNs};
    raw_syscall(SYS_ppoll, 0, 0, reinterpret_cast<long>(&pause));
  }
}

// The right to change slots. Waits a short time for a rescan on another thread; never forever,
// because the calling thread may itself have been stopped inside a rescan.
class Changing {
 public:
  explicit Changing(int wait_ms) : errno_(errno), was_busy_(thread_state.is_busy) {
    is_ours_ = take_changing(wait_ms);
    if (is_ours_) thread_state.is_busy = true;
  }
  ~Changing() {
    if (is_ours_) {
      thread_state.is_busy = was_busy_;
      is_changing.store(false, std::memory_order_release);
    }
    errno = errno_;
  }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;
  explicit operator bool() const { return is_ours_; }

 private:
  bool is_ours_ = false;
  int errno_;
  bool was_busy_;
};

size_t patch_everything() {
  HookList of_mmap = is_sampling_mmap() ? mmap_hooks() : HookList{nullptr, 0};
  const HookList lists[] = {all_hooks(), dlopen_hooks(), operator_hooks, of_mmap};
  return patch_slots(lists);
}

void restore_everything() {
  const HookList lists[] = {all_hooks(), dlopen_hooks(), operator_hooks, mmap_hooks()};
  restore_slots(lists);
}

// An allocation that libc makes itself must pass through a hook.
bool probe_arrives() {
  thread_state.is_busy = false;
  thread_state.is_probe = true;
  thread_state.bytes_left = 0;
  char* (*volatile duplicate)(const char*) =
      strdup;  // so that the compiler cannot replace the call
  char* text = duplicate("assay");
  bool arrived = !thread_state.is_probe;
  thread_state.is_probe = false;
  free(text);
  thread_state.bytes_left = 0;
  thread_state.is_busy = true;
  return arrived;
}

int attach_slots() {
  if (is_allocator_in_program()) {  // the program calls it directly: there is no slot to hook
    channel_writer.set_problem(HeapProblem::static_allocator);
    return static_cast<int>(HeapProblem::static_allocator);
  }
  if (!live_table.prepare()) {
    channel_writer.set_problem(HeapProblem::no_memory);
    return static_cast<int>(HeapProblem::no_memory);
  }
  operator_hooks = find_operator_hooks();
  find_dlopen();
  find_operator_new();
  set_mmap_sampling(channel_writer.wants_mmap());
  prepare_stack_walk();
  size_t slots = patch_everything();
  if (!probe_arrives()) {
    restore_everything();
    channel_writer.set_problem(HeapProblem::static_allocator);
    return static_cast<int>(HeapProblem::static_allocator);
  }
  uint64_t now = now_ns();
  settled_ns = now + kSettlingNs;
  next_rescan_ns = now + kRescanNs;
  is_attached.store(true, std::memory_order_release);
  follow_forks();
  channel_writer.set_ready(slots);
  return 0;
}

}  // namespace

void hold_changes() {
  forking.fetch_add(1, std::memory_order_acq_rel);
  thread_state.holds_changes = take_changing(kForkWaitMs, true);
}

void release_changes() {
  forking.fetch_sub(1, std::memory_order_acq_rel);
  if (!thread_state.holds_changes) return;
  thread_state.holds_changes = false;
  is_changing.store(false, std::memory_order_release);
}

// Another thread may have held the right, but in the child only the forking thread exists. No
// further pass is made here: the loader's lock may be held by a thread that exists only in the
// parent, and the child would wait for it forever. (Objects that the child loads itself are still
// hooked: then it had the lock.)
void forget_changes() {
  next_rescan_ns.store(UINT64_MAX, std::memory_order_relaxed);
  forking.store(0, std::memory_order_relaxed);
  thread_state.holds_changes = false;
  is_changing.store(false, std::memory_order_release);
}

bool has_hooked_slots() {
  return is_attached.load(std::memory_order_acquire);
}

void ask_for_rescan() {
  uint64_t now = now_ns();
  settled_ns.store(now + kSettlingNs, std::memory_order_relaxed);
  next_rescan_ns.store(now, std::memory_order_relaxed);
}

void rescan_now() {
  Changing changing(kNoWaitMs);
  if (!changing) ask_for_rescan();  // a thread forks, or is changing slots already
  if (!changing || !is_attached.load(std::memory_order_acquire)) return;
  channel_writer.add_hooked(patch_everything());
  find_operator_new();
}

void rescan_if_due() {
  if (!is_attached.load(std::memory_order_relaxed)) return;
  uint64_t due = next_rescan_ns.load(std::memory_order_relaxed), now = now_ns();
  if (now < due || channel_writer.is_foreign())
    return;  // a child that was created without libc's fork
  uint64_t next = now < settled_ns.load(std::memory_order_relaxed) ? now + kRescanNs : UINT64_MAX;
  if (!next_rescan_ns.compare_exchange_strong(due, next, std::memory_order_relaxed)) return;
  Changing changing(kNoWaitMs);
  if (changing && is_attached.load(std::memory_order_acquire))
    channel_writer.add_hooked(patch_everything());
}

}  // namespace assay::inject

using namespace assay::inject;

extern "C" {

__attribute__((visibility("default"))) uint32_t assay_heap_version(void) {
  return kHeapChannelVersion;
}

__attribute__((visibility("default"))) int assay_heap_attach(int channel_fd) {
  Changing changing(kWaitMs);
  if (!changing) return kHeapBusy;
  // For a child that was created without libc's fork. Its hooks are already in place, which is no
  // problem.
  if (channel_writer.is_foreign()) channel_writer.forget(false);
  if (channel_writer.is_open()) return kHeapBusy;
  resolve_real_allocator();
  if (!channel_writer.open_fd(channel_fd)) return kHeapBadChannel;
  if (is_interposed()) {
    channel_writer.set_ready(1);
    return 0;
  }
  int problem = attach_slots();
  if (problem != 0) channel_writer.close();
  return problem;
}

__attribute__((visibility("default"))) int assay_heap_detach(void) {
  Changing changing(kWaitMs);
  if (!changing) return kHeapBusy;
  if (is_attached.exchange(false, std::memory_order_acq_rel)) restore_everything();
  channel_writer.close();
  forget_live_samples();
  return 0;
}

}  // extern "C"
