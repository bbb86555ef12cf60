// Time: signed nanoseconds of CLOCK_MONOTONIC, the one clock that samples, waits, counters and load
// share. Wall-clock (UTC) time appears only in a run's metadata.
#pragma once

#include <cstdint>

namespace assay {

using TimeNs = int64_t;

inline constexpr int64_t kNsPerUs = 1'000;
inline constexpr int64_t kNsPerMs = 1'000'000;
inline constexpr int64_t kNsPerSecond = 1'000'000'000;

TimeNs monotonic_ns();  // now, CLOCK_MONOTONIC
TimeNs boottime_ns();   // now, CLOCK_BOOTTIME: what /proc/PID/stat's starttime counts in
int64_t utc_ns();       // now, CLOCK_REALTIME

}  // namespace assay
