// Histogram: durations counted in logarithmic buckets, so that every quantile is within 1 % of the
// truth for any range of values, in a fixed 58 kB.
//
// A value below 128 ns has a bucket of its own; above, every power of two is cut into 128 buckets
// of equal width, and a bucket stands for its middle: an error of at most 1/256 (0.4 %). The
// largest and the smallest value are kept exactly. Threads: one writer; copies are values.
// Failures: none; negative durations count as 0.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>

namespace assay::load {

class Histogram {
 public:
  static constexpr int kSubBits = 7;
  static constexpr uint32_t kSubBuckets = 1U << kSubBits;
  static constexpr uint32_t kBuckets = kSubBuckets * (64 - kSubBits);

  static uint32_t bucket_of(uint64_t value) {
    if (value < kSubBuckets) return static_cast<uint32_t>(value);
    int shift = std::bit_width(value) - 1 - kSubBits;
    auto sub = static_cast<uint32_t>(value >> shift) - kSubBuckets;
    return kSubBuckets * static_cast<uint32_t>(shift + 1) + sub;
  }
  static int64_t middle_of(uint32_t bucket);

  void record(int64_t value_ns) {
    auto value = static_cast<uint64_t>(value_ns < 0 ? 0 : value_ns);
    ++counts_[bucket_of(value)];
    ++count_;
    sum_ += static_cast<double>(value);
    if (value > max_) max_ = value;
    if (value < min_) min_ = value;
  }
  void merge(const Histogram& other);
  void clear() { *this = Histogram(); }

  uint64_t count() const { return count_; }
  int64_t max_ns() const { return static_cast<int64_t>(max_); }
  int64_t min_ns() const { return count_ == 0 ? 0 : static_cast<int64_t>(min_); }
  double mean_ns() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  // The value that a share of all values does not exceed; 0 when there are none.
  int64_t quantile_ns(double share) const;

  // For sending a histogram to another process: every bucket that is not empty, and back.
  void for_each_bucket(const std::function<void(uint32_t, uint64_t)>& visit) const;
  void add_bucket(uint32_t bucket, uint64_t count);  // a bucket out of range is ignored
  void set_max(int64_t max_ns);  // after add_bucket: the largest value as it was

 private:
  std::array<uint64_t, kBuckets> counts_{};
  uint64_t count_ = 0;
  double sum_ = 0;
  uint64_t max_ = 0;
  uint64_t min_ = UINT64_MAX;
};

}  // namespace assay::load
