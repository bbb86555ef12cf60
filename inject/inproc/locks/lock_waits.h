// Waits for locks, conditions and semaphores, sampled by time waited.
//
// The hooks measure a wait only after a try has failed; record_wait then decides by the nanoseconds
// waited (Poisson, one sample per mean_ns) whether to walk the stack. Weights are unbiased per
// sample and summed. record_wait neither locks nor allocates. Counts in the table are in
// thousandths.
#pragma once

#include <atomic>
#include <cstdint>

#include "inject/inproc/cpu/sample_table.h"

namespace assay::inproc {

enum class WaitKind : uint32_t { mutex = 1, rwlock, condition, semaphore };

inline constexpr uint64_t kDefaultWaitNs = 1'000'000;
inline constexpr int64_t kWaitCountScale = 1000;

extern std::atomic<uint64_t> wait_mean_ns;  // 0: off

inline bool waits_are_sampled() {
  return wait_mean_ns.load(std::memory_order_relaxed) != 0;
}

// False: no memory.
bool set_lock_waits(uint64_t mean_ns);
// `return_address` is that of the hook: it lies in the hook's caller.
void record_wait(WaitKind kind, int64_t begin_ns, const void* return_address);
// nullptr: never switched on.
const SampleTable* lock_wait_table();

// Where threads were created.
void record_thread_creation(const void* return_address);
const SampleTable* thread_creation_table();

}  // namespace assay::inproc
