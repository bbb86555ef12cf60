// Durations: count, sum, maximum and quantiles of a stream of durations, in bounded memory.
//
// Exact up to kExactCount values; beyond that a histogram of 128 buckets per power of two, whose
// quantiles are within 0.4 % of the exact ones. Count, sum and maximum are always exact.
// Not thread-safe; never fails (a negative duration counts as 0).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::analysis {

class Durations {
 public:
  static constexpr size_t kExactCount = 512;

  void add(int64_t ns);

  uint64_t count() const { return count_; }
  int64_t sum_ns() const { return sum_ns_; }
  int64_t max_ns() const { return max_ns_; }
  int64_t mean_ns() const { return count_ ? sum_ns_ / static_cast<int64_t>(count_) : 0; }
  // The smallest value that at least q of all values do not exceed (nearest rank); 0 when empty.
  int64_t quantile_ns(double q) const;

 private:
  void add_to_histogram(uint64_t ns);

  uint64_t count_ = 0;
  int64_t sum_ns_ = 0;
  int64_t max_ns_ = 0;
  std::vector<int64_t> exact_;
  std::vector<std::vector<uint64_t>> octaves_;  // empty until exact_ overflows
};

}  // namespace assay::analysis
