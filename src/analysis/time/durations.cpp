#include "analysis/time/durations.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace assay::analysis {
namespace {

constexpr int kSubBits = 7;
constexpr uint64_t kSubCount = 1 << kSubBits;

// Octave 0 holds 0…127 exactly; octave o ≥ 1 holds [128 << (o−1), 256 << (o−1)) in 128 buckets.
int octave_of(uint64_t ns) {
  return std::max(0, static_cast<int>(std::bit_width(ns)) - kSubBits);
}

int64_t middle_of(int octave, uint64_t sub) {
  if (octave == 0) return static_cast<int64_t>(sub);
  int shift = octave - 1;
  return static_cast<int64_t>(((kSubCount + sub) << shift) + (uint64_t{1} << shift) / 2);
}

}  // namespace

void Durations::add(int64_t ns) {
  ns = std::max<int64_t>(ns, 0);
  ++count_;
  sum_ns_ += ns;
  max_ns_ = std::max(max_ns_, ns);
  if (octaves_.empty()) {
    if (exact_.size() < kExactCount) {
      exact_.push_back(ns);
      return;
    }
    octaves_.resize(64 - kSubBits + 1);
    for (int64_t old : exact_) add_to_histogram(static_cast<uint64_t>(old));
    exact_ = {};
  }
  add_to_histogram(static_cast<uint64_t>(ns));
}

void Durations::add_to_histogram(uint64_t ns) {
  int octave = octave_of(ns);
  std::vector<uint64_t>& buckets = octaves_[octave];
  if (buckets.empty()) buckets.resize(kSubCount);
  ++buckets[octave == 0 ? ns : (ns >> (octave - 1)) - kSubCount];
}

int64_t Durations::quantile_ns(double q) const {
  if (count_ == 0) return 0;
  auto rank = static_cast<uint64_t>(std::ceil(q * static_cast<double>(count_)));
  rank = std::clamp<uint64_t>(rank, 1, count_);
  if (octaves_.empty()) {
    std::vector<int64_t> sorted = exact_;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<long>(rank - 1), sorted.end());
    return sorted[rank - 1];
  }
  uint64_t seen = 0;
  for (size_t octave = 0; octave < octaves_.size(); ++octave) {
    for (uint64_t sub = 0; sub < octaves_[octave].size(); ++sub) {
      seen += octaves_[octave][sub];
      if (seen >= rank) return std::min(max_ns_, middle_of(static_cast<int>(octave), sub));
    }
  }
  return max_ns_;
}

}  // namespace assay::analysis
