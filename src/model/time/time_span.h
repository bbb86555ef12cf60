// TimeSpan: the time from begin_ns up to, and without, end_ns.
//
// Plain value; a span that ends before it begins is empty. Ends may come from a file: nothing here
// overflows.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace assay::model {

struct TimeSpan {
  TimeNs begin_ns = 0;
  TimeNs end_ns = 0;

  bool empty() const { return end_ns <= begin_ns; }
  int64_t ns() const {
    int64_t length = 0;
    if (empty()) return 0;
    return __builtin_sub_overflow(end_ns, begin_ns, &length) ? INT64_MAX : length;
  }
  // The part of this span that also lies in the other; empty where they do not meet.
  TimeSpan within(const TimeSpan& other) const {
    return {std::max(begin_ns, other.begin_ns), std::min(end_ns, other.end_ns)};
  }
  // The nearest time that is not outside the span.
  TimeNs nearest(TimeNs time) const {
    return std::clamp(time, begin_ns, std::max(begin_ns, end_ns));
  }
  bool operator==(const TimeSpan&) const = default;
};

}  // namespace assay::model
