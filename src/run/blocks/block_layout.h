// What encoder and decoder share: column numbers and packed values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/sample.h"

namespace assay::run {

namespace sample_layout {
inline constexpr uint8_t kKind = 1;
enum Column : size_t { kThreadRuns, kTime, kStacks, kStackIndex, kWeight, kCpu, kColumnCount };
// Bit i: column i has one number a row, and is stored in planes.
inline constexpr uint32_t kPerRowColumns =
    1u << kTime | 1u << kStackIndex | 1u << kWeight | 1u << kCpu;
}  // namespace sample_layout

namespace wait_layout {
inline constexpr uint8_t kKind = 2;
enum Column : size_t {
  kThreadRuns,
  kGap,
  kDuration,
  kRunqueue,
  kShapes,
  kShapeIndex,
  kObjects,
  kObjectIndex,
  kWaker,
  kWakerStacks,
  kWakerStackIndex,
  kOwner,
  kWakeup,
  kColumnCount
};
// Blocks of the first version had only these columns.
inline constexpr size_t kFewestColumns = kWaker + 1;
inline constexpr uint32_t kPerRowColumns = 1u << kGap | 1u << kDuration | 1u << kRunqueue |
                                           1u << kShapeIndex | 1u << kObjectIndex | 1u << kWaker |
                                           1u << kWakerStackIndex | 1u << kOwner | 1u << kWakeup;

// Stack, flags and syscall go together: few distinct triples, so one small index a row.
inline uint64_t pack_shape(const model::Wait& wait) {
  return uint64_t{wait.stack.value} << 32 | uint64_t{wait.flags} << 16 | wait.syscall;
}
inline uint32_t shape_stack(uint64_t shape) {
  return static_cast<uint32_t>(shape >> 32);
}
inline uint16_t shape_flags(uint64_t shape) {
  return static_cast<uint16_t>(shape >> 16);
}
inline uint16_t shape_syscall(uint64_t shape) {
  return static_cast<uint16_t>(shape);
}

// 0: none; 1: the whole duration (preempted); else the run-queue time + 1.
inline uint64_t runqueue_code(int64_t duration_ns, int64_t runqueue_ns) {
  if (runqueue_ns == 0) return 0;
  if (runqueue_ns == duration_ns) return 1;
  return static_cast<uint64_t>(runqueue_ns) + 1;
}
}  // namespace wait_layout

namespace heap_alloc_layout {
inline constexpr uint8_t kKind = 3;
enum Column : size_t {
  kThreadRuns,
  kTime,
  kStacks,
  kStackIndex,
  kId,
  kSize,
  kRate,
  kFunction,
  kColumnCount
};
inline constexpr uint32_t kPerRowColumns =
    1u << kTime | 1u << kStackIndex | 1u << kId | 1u << kSize | 1u << kRate | 1u << kFunction;
}  // namespace heap_alloc_layout

namespace heap_free_layout {
inline constexpr uint8_t kKind = 4;
enum Column : size_t { kThreadRuns, kTime, kId, kColumnCount };
inline constexpr uint32_t kPerRowColumns = 1u << kTime | 1u << kId;
}  // namespace heap_free_layout

// More columns than a reader knows are skipped; more than this are damage.
inline constexpr size_t kMaxColumns = 32;

}  // namespace assay::run
