// FutexLock: libassay's own lock, so that locking it never calls libassay's pthread hooks.
//
// Never taken in signal handlers. `reset` is for a forked child, which has no other threads.
#pragma once

#include <atomic>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace assay::inproc {

inline void futex_wait(std::atomic<uint32_t>& word, uint32_t seen, const timespec* timeout) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, timeout, nullptr, 0);
}
inline void futex_wake(std::atomic<uint32_t>& word, int threads) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

class FutexLock {
 public:
  void lock() {
    uint32_t seen = 0;
    if (state_.compare_exchange_strong(seen, 1, std::memory_order_acquire)) return;
    while (state_.exchange(2, std::memory_order_acquire) != 0) futex_wait(state_, 2, nullptr);
  }
  bool try_lock() {
    uint32_t seen = 0;
    return state_.compare_exchange_strong(seen, 1, std::memory_order_acquire);
  }
  void unlock() {
    if (state_.exchange(0, std::memory_order_release) == 2) futex_wake(state_, 1);
  }
  void reset() { state_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> state_ = 0;  // 0 free, 1 held, 2 held and waited for
};

class Hold {
 public:
  explicit Hold(FutexLock& lock) : lock_(lock) { lock_.lock(); }
  ~Hold() { lock_.unlock(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  FutexLock& lock_;
};

}  // namespace assay::inproc
