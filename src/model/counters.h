// Counters: what the hardware and the kernel counted for a target, what was not counted, and why.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace assay::model {

enum class CounterId : uint8_t {
  cpu_clock,
  context_switches,
  migrations,
  minor_faults,
  major_faults,
  cycles,
  instructions,
  branches,
  branch_misses,
  frontend_stalls,
  backend_stalls,
  l1d_loads,
  l1d_misses,
  llc_loads,
  llc_misses,
  dtlb_loads,
  dtlb_misses,
};
inline constexpr int kCounterCount = 17;

struct Count {
  bool counted = false;
  double value = 0;  // scaled to the whole time
  double counted_share =
      1;  // share of the enabled time in which it counted; below 1: the value is scaled
  std::string problem;  // why it is not counted
};
using Counts = std::array<Count, kCounterCount>;

inline const Count& count_of(const Counts& counts, CounterId id) {
  return counts[static_cast<size_t>(id)];
}

}  // namespace assay::model
