// Bins: a range of time in equal parts.
//
// Bin i is [border(i), border(i + 1)); borders are rounded up to whole ns, so that two divisions of
// one range, of which one's count is a multiple of the other's, have the other's borders in common.
// What lies outside the range belongs to the first or the last bin. Immutable; no failures.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/sample.h"

namespace assay::view {

class Bins {
 public:
  Bins(TimeNs begin_ns, TimeNs end_ns, uint32_t count) : begin_ns_(begin_ns) {
    auto length = static_cast<unsigned __int128>(std::max<int64_t>(0, end_ns - begin_ns));
    uint32_t bins = std::max(1u, count);
    borders_.reserve(size_t{bins} + 1);
    for (uint32_t bin = 0; bin <= bins; ++bin) {
      borders_.push_back(begin_ns + static_cast<TimeNs>((length * bin + bins - 1) / bins));
    }
    per_ns_ = length == 0 ? 0 : bins / static_cast<double>(end_ns - begin_ns);
  }

  uint32_t count() const { return static_cast<uint32_t>(borders_.size() - 1); }
  TimeNs border(uint32_t bin) const { return borders_[bin]; }

  // A division of 128 bits would be exact but costs more than all else that is done with a row: the
  // guess is set right by the borders.
  uint32_t of(TimeNs time_ns) const {
    uint32_t last = count() - 1;
    if (per_ns_ == 0 || time_ns <= begin_ns_) return 0;
    double guess = static_cast<double>(time_ns - begin_ns_) * per_ns_;
    auto bin = guess >= last ? last : static_cast<uint32_t>(guess);
    while (bin > 0 && time_ns < borders_[bin]) --bin;
    while (bin < last && time_ns >= borders_[bin + 1]) ++bin;
    return bin;
  }

  // visit(bin, ns) of every part of [begin, end), cut at the borders.
  template <class Visit>
  void cut(TimeNs begin_ns, TimeNs end_ns, const Visit& visit) const {
    uint32_t last = count() - 1;
    for (uint32_t bin = of(begin_ns); begin_ns < end_ns; ++bin) {
      TimeNs until = bin >= last ? end_ns : std::min(borders_[bin + 1], end_ns);
      if (until > begin_ns) visit(std::min(bin, last), until - begin_ns);
      begin_ns = std::max(begin_ns, until);
    }
  }

 private:
  TimeNs begin_ns_;
  std::vector<TimeNs> borders_;
  double per_ns_ = 0;
};

}  // namespace assay::view
