#include "inject/preload/sample_budget.h"

#include <sys/syscall.h>

#include "inject/core/syscalls.h"
#include "inject/preload/heap_sampler.h"

namespace assay::inject {

uint32_t SampleBudget::cores() {
  uint32_t known = cores_.load(std::memory_order_relaxed);
  if (known) return known;
  uint64_t mask[16] = {};
  long bytes = raw_syscall(SYS_sched_getaffinity, 0, sizeof mask, reinterpret_cast<long>(mask));
  for (long i = 0; i < bytes / 8; ++i)
    known += static_cast<uint32_t>(__builtin_popcountll(mask[i]));
  if (known == 0) known = 1;
  cores_.store(known, std::memory_order_relaxed);
  return known;
}

void SampleBudget::spend(uint64_t now_ns, uint32_t per_core) {
  if (per_core == 0) per_core = kMaxSamplesPerCore;
  uint64_t start = window_start_ns_.load(std::memory_order_relaxed);
  uint32_t spent = spent_.fetch_add(1, std::memory_order_relaxed) + 1;
  uint64_t elapsed = now_ns > start ? now_ns - start : 0;
  uint64_t allowed_per_s = uint64_t{per_core} * cores();
  uint64_t allowed = allowed_per_s * kWindowNs / 1'000'000'000 + 1;
  bool too_many = spent > allowed, window_over = elapsed >= kWindowNs;
  if (!too_many && !window_over) return;
  // One thread ends the window; the others go on in the next.
  if (!window_start_ns_.compare_exchange_strong(start, now_ns, std::memory_order_relaxed)) return;
  spent_.store(0, std::memory_order_relaxed);
  uint32_t shift = shift_.load(std::memory_order_relaxed);
  if (!window_over) {
    if (shift < kMaxShift) shift_.store(shift + 1, std::memory_order_relaxed);
    return;
  }
  // At half the rate there would be twice the samples: lower it only where those fit with room to
  // spare.
  uint64_t per_s = uint64_t{spent} * 1'000'000'000 / elapsed;
  while (shift > 0 && per_s * 2 < allowed_per_s * 3 / 4) --shift, per_s *= 2;
  shift_.store(shift, std::memory_order_relaxed);
}

}  // namespace assay::inject
