// Sampled allocations: what the heap part of a run is made of.
//
// Allocations are sampled by bytes: one of `size` bytes is taken with probability
// 1 − e^(−size / rate) and then stands for weight() allocations like it. Sums over samples are
// unbiased because every sample is weighted by itself, never by the mean of its call site.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/clock.h"
#include "model/ids.h"

namespace assay::model {

// What the program called; numbers are stored in runs.
enum class HeapFunction : uint8_t {
  malloc = 0,
  calloc = 1,
  realloc = 2,
  aligned = 3,
  operator_new = 4,
  mmap = 5
};
inline constexpr int kHeapFunctionCount = 6;

inline const char* heap_function_name(HeapFunction function) {
  switch (function) {
    case HeapFunction::malloc:
      return "malloc";
    case HeapFunction::calloc:
      return "calloc";
    case HeapFunction::realloc:
      return "realloc";
    case HeapFunction::aligned:
      return "aligned_alloc";
    case HeapFunction::operator_new:
      return "operator new";
    case HeapFunction::mmap:
      return "mmap";
  }
  return "?";
}

struct HeapAlloc {
  TimeNs time = 0;
  ThreadId thread;
  StackId stack;            // the leaf is the caller of the allocating function
  uint64_t id = 0;          // counts sampled allocations of the run in the order they came
  uint64_t size_bytes = 0;  // as asked for
  uint64_t rate_bytes = 1;  // mean bytes between samples then
  HeapFunction function = HeapFunction::malloc;

  // Chance that this allocation was sampled.
  double chance() const {
    if (rate_bytes <= 1) return 1;
    double chance = -std::expm1(-static_cast<double>(size_bytes) / static_cast<double>(rate_bytes));
    return chance > 0 ? chance : 1;  // an allocation of 0 bytes is never sampled: weight 1
  }
  double weight() const { return 1 / chance(); }
};

// The end of a sampled allocation.
struct HeapFree {
  TimeNs time = 0;
  ThreadId thread;  // the thread that freed it; the allocating thread where that is not known
  uint64_t id = 0;  // of its HeapAlloc
};

// The estimated live heap of one process at one moment, as it was known then.
struct HeapSnapshot {
  ProcessId process;
  TimeNs time = 0;
  int64_t live_bytes = 0;
  int64_t live_objects = 0;
  int64_t samples = 0;
};

// What a thread allocated at one call stack, summed by another profiler: without times. A stack may
// have several. No value is negative; a value that the profiler does not provide is 0.
struct HeapSum {
  ThreadId thread;
  StackId stack;
  int64_t live_bytes = 0, live_objects = 0;  // when the profile was taken
  int64_t bytes = 0, objects = 0;            // all that was allocated, freed or not
  int64_t rate_bytes = 0;  // mean bytes between samples; 0: not known, or everything was counted
};

}  // namespace assay::model
