// Metric: which of a run's quantities is exported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::formats {

enum class Metric : uint8_t {
  cpu,       // ns that on-CPU samples stand for
  off,       // ns blocked; waiting for a CPU is not blocking
  wall,      // cpu + off + runqueue: where the threads' time went
  lock,      // ns blocked on locks
  runqueue,  // ns runnable without a CPU
  samples,   // on-CPU samples
  waits,     // times that a thread blocked
  // Of sampled allocations, estimated: what was allocated, and what of it is still held.
  inuse_space,
  inuse_objects,
  alloc_space,
  alloc_objects,
};
inline constexpr int kMetricCount = 11;

std::string_view metric_name(Metric metric);             // "cpu"
std::string_view metric_title(Metric metric);            // "On-CPU time"
bool is_time(Metric metric);                             // its values are ns
bool is_heap(Metric metric);                             // of allocations
std::string_view metric_unit(Metric metric);             // "nanoseconds", "bytes" or "count"
std::string metric_value(Metric metric, int64_t value);  // "1.5 s", "44.0 MB", "12.3k"
std::optional<Metric> parse_metric(std::string_view name);

}  // namespace assay::formats
