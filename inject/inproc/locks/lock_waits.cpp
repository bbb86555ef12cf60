#include "inject/inproc/locks/lock_waits.h"

#include "inject/core/stack_walk.h"
#include "inject/inproc/locks/futex_lock.h"
#include "inject/inproc/lifecycle/label_table.h"
#include "inject/inproc/cpu/own_threads.h"
#include "inject/inproc/write/profile.h"
#include "inject/preload/exponential.h"

namespace assay::inproc {

std::atomic<uint64_t> wait_mean_ns = 0;

namespace {

constexpr uint32_t kMaxFrames = 128;
constexpr uint32_t kRowsLog2 = 14;
constexpr uint32_t kFrameWords = 1 << 20;

FutexLock open_lock;
SampleTable waits, creations;
std::atomic<bool> waits_open, creations_open;

struct WaitState {
  uint64_t left_ns;
  uint64_t random;  // 0: this thread has not waited yet
};
thread_local WaitState wait_state = {};

bool open_once(SampleTable& table, std::atomic<bool>& is_open) {
  if (is_open.load(std::memory_order_acquire)) return true;
  if (!open_lock.try_lock()) return false;
  bool opened = table.is_open() || table.open(kRowsLog2, kFrameWords);
  is_open.store(opened, std::memory_order_release);
  open_lock.unlock();
  return opened;
}

}  // namespace

bool set_lock_waits(uint64_t mean_ns) {
  if (mean_ns != 0 && !open_once(waits, waits_open)) return false;
  wait_mean_ns.store(mean_ns, std::memory_order_relaxed);
  return true;
}

void record_wait(WaitKind kind, int64_t begin_ns, const void* return_address) {
  uint64_t mean_ns = wait_mean_ns.load(std::memory_order_relaxed);
  int64_t waited = monotonic_ns() - begin_ns;
  if (mean_ns == 0 || waited <= 0) return;
  auto waited_ns = static_cast<uint64_t>(waited);
  WaitState& state = wait_state;
  if (state.random == 0) {
    state.random =
        static_cast<uint64_t>(begin_ns) * 0x9e3779b97f4a7c15 ^ static_cast<uint64_t>(current_tid());
    state.random |= 1;
    state.left_ns = inject::draw_interval(state.random, mean_ns);
  }
  if (waited_ns <= state.left_ns) {
    state.left_ns -= waited_ns;
    return;
  }
  state.left_ns = inject::draw_interval(state.random, mean_ns);
  double weight = inject::sample_weight(waited_ns, mean_ns);
  uintptr_t pcs[kMaxFrames];
  uint32_t frames = inject::walk_above(return_address, pcs, kMaxFrames).frames;
  waits.add(pcs, frames, current_label(), static_cast<uint32_t>(kind),
            static_cast<int64_t>(weight * kWaitCountScale + 0.5),
            static_cast<int64_t>(weight * static_cast<double>(waited_ns) + 0.5));
}

const SampleTable* lock_wait_table() {
  return waits_open.load() ? &waits : nullptr;
}

void record_thread_creation(const void* return_address) {
  if (!open_once(creations, creations_open)) return;
  uintptr_t pcs[kMaxFrames];
  uint32_t frames = inject::walk_above(return_address, pcs, kMaxFrames).frames;
  creations.add(pcs, frames, current_label(), 0, 1, 0);
}

const SampleTable* thread_creation_table() {
  return creations_open.load() ? &creations : nullptr;
}

}  // namespace assay::inproc
