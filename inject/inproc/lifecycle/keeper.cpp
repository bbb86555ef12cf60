#include "inject/inproc/lifecycle/keeper.h"

#include <atomic>

#include "inject/inproc/locks/futex_lock.h"
#include "inject/inproc/cpu/own_threads.h"

namespace assay::inproc {
namespace {

constexpr int kMaxTasks = 8;

FutexLock keeper_lock;
std::atomic<KeeperTask> tasks[kMaxTasks];
std::atomic<uint32_t> wakes;
bool running = false;  // guarded by keeper_lock

void run(void*) {
  for (;;) {
    uint32_t seen = wakes.load(std::memory_order_acquire);
    int64_t soonest_ms = kNever;
    for (auto& task : tasks) {
      KeeperTask body = task.load(std::memory_order_acquire);
      int64_t wanted_ms = body == nullptr ? kNever : body();
      if (wanted_ms >= 0 && (soonest_ms < 0 || wanted_ms < soonest_ms)) soonest_ms = wanted_ms;
    }
    timespec wait{soonest_ms / 1000, soonest_ms % 1000 * 1'000'000};
    futex_wait(wakes, seen, soonest_ms < 0 ? nullptr : &wait);
  }
}

}  // namespace

bool keep(KeeperTask task) {
  Hold hold(keeper_lock);
  bool known = false;
  for (auto& slot : tasks) {
    KeeperTask there = slot.load(std::memory_order_relaxed);
    if (there == task) known = true;
    if (known) break;
    if (there == nullptr) {
      slot.store(task, std::memory_order_release);
      known = true;
      break;
    }
  }
  if (!known) return false;
  if (!running) running = start_own_thread("assay-keeper", run, nullptr);
  return running;
}

void wake_keeper() {
  wakes.fetch_add(1, std::memory_order_release);
  futex_wake(wakes, 1);
}

void forget_keeper() {
  keeper_lock.reset();
  running = false;
}

}  // namespace assay::inproc
