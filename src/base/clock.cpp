#include "base/clock.h"

#include <ctime>

namespace assay {
namespace {

int64_t read_clock(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

}  // namespace

TimeNs monotonic_ns() {
  return read_clock(CLOCK_MONOTONIC);
}
TimeNs boottime_ns() {
  return read_clock(CLOCK_BOOTTIME);
}
int64_t utc_ns() {
  return read_clock(CLOCK_REALTIME);
}

}  // namespace assay
