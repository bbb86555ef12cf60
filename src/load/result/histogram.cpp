#include "load/result/histogram.h"

#include <algorithm>
#include <cmath>

namespace assay::load {

int64_t Histogram::middle_of(uint32_t bucket) {
  if (bucket < kSubBuckets) return bucket;
  uint32_t shift = bucket / kSubBuckets - 1;
  uint64_t low = static_cast<uint64_t>(kSubBuckets + bucket % kSubBuckets) << shift;
  uint64_t width = uint64_t{1} << shift;
  return static_cast<int64_t>(std::min<uint64_t>(low + width / 2, INT64_MAX));
}

void Histogram::merge(const Histogram& other) {
  for (uint32_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
  min_ = std::min(min_, other.min_);
}

int64_t Histogram::quantile_ns(double share) const {
  if (count_ == 0) return 0;
  double wanted = std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(count_));
  auto rank = std::max<uint64_t>(1, static_cast<uint64_t>(wanted));
  uint64_t seen = 0;
  for (uint32_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::clamp(middle_of(i), min_ns(), max_ns());
  }
  return max_ns();
}

void Histogram::for_each_bucket(const std::function<void(uint32_t, uint64_t)>& visit) const {
  for (uint32_t i = 0; i < kBuckets; ++i) {
    if (counts_[i] != 0) visit(i, counts_[i]);
  }
}

void Histogram::add_bucket(uint32_t bucket, uint64_t count) {
  if (bucket >= kBuckets || count == 0) return;
  auto middle = static_cast<uint64_t>(middle_of(bucket));
  counts_[bucket] += count;
  count_ += count;
  sum_ += static_cast<double>(middle) * static_cast<double>(count);
  max_ = std::max(max_, middle);
  min_ = std::min(min_, middle);
}

void Histogram::set_max(int64_t max_ns) {
  max_ = static_cast<uint64_t>(std::max<int64_t>(0, max_ns));
}

}  // namespace assay::load
