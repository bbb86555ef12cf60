// CounterInterval: what descriptors counted between two readings, scaled by their turns within this
// interval.
//
// Scaled totals must not be subtracted: the share of time in which a counter counts differs between
// intervals and changes the whole total, so the difference may even be negative. Each descriptor
// contributes its growth times enabled/counted time, both of the interval. For a descriptor that
// was enabled and had no turn, the rate of the others is assumed. Pure.
#pragma once

#include <cstdint>

#include "os/events/counter_kernel.h"

namespace assay::capture {

class CounterInterval {
 public:
  void add(const os::CounterReading& before, const os::CounterReading& after) {
    double enabled = grown(before.enabled_ns, after.enabled_ns);
    double running = grown(before.running_ns, after.running_ns);
    enabled_ns_ += enabled;
    running_ns_ += running;
    if (running <= 0) return;
    told_ns_ += enabled;
    value_ += grown(before.value, after.value) * enabled / running;
  }

  double value() const { return told_ns_ > 0 ? value_ * enabled_ns_ / told_ns_ : 0; }
  // Share of the enabled time in which it counted; 1 where it was not enabled at all.
  double share() const { return enabled_ns_ > 0 ? running_ns_ / enabled_ns_ : 1; }
  bool had_a_turn() const { return enabled_ns_ <= 0 || running_ns_ > 0; }

 private:
  static double grown(uint64_t before, uint64_t after) {
    return after > before ? static_cast<double>(after - before) : 0;
  }

  double value_ = 0;
  double enabled_ns_ = 0, running_ns_ = 0;
  double told_ns_ = 0;  // enabled time of the descriptors that had a turn
};

}  // namespace assay::capture
