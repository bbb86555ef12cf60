// SampleBudget: limits the samples per second of a busy program by raising the rate in powers of
// two.
//
// It is called for every sample and returns by how much the requested rate is raised. Any thread,
// lock-free: a race moves the rate a step too far, which the next window corrects (every sample
// carries its own rate, so no estimate becomes wrong).
#pragma once

#include <atomic>
#include <cstdint>

namespace assay::inject {

class SampleBudget {
 public:
  static constexpr uint64_t kWindowNs = 100'000'000;
  static constexpr uint32_t kMaxShift = 16;

  uint64_t raised(uint64_t rate_bytes) const {
    return rate_bytes << shift_.load(std::memory_order_relaxed);
  }
  // One sample at `now_ns`; `per_core` a second are allowed on each core (0: the default).
  void spend(uint64_t now_ns, uint32_t per_core);

  uint32_t shift() const { return shift_.load(std::memory_order_relaxed); }
  void set_cores(uint32_t cores) { cores_.store(cores, std::memory_order_relaxed); }

 private:
  uint32_t cores();
  std::atomic<uint32_t> shift_{0}, spent_{0}, cores_{0};
  std::atomic<uint64_t> window_start_ns_{0};
};

}  // namespace assay::inject
