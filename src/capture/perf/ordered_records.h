// OrderedRecords: records of many rings become one stream in time order.
//
// A record is released when every ring has been read twice since its time: a record that was being
// written during one round is complete by the next. A record that comes even later is released at
// once and counted, so no record is lost to keep the order. Threads: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "capture/perf/batch.h"

namespace assay::capture {

class OrderedRecords {
 public:
  using Visit = std::function<void(std::span<const std::byte>)>;

  // Takes a batch and visits the records that may be released now, in time order.
  void add(Batch batch, const Visit& visit);
  // Visits all that is left; for the end of a capture.
  void flush(const Visit& visit);

  uint64_t late() const { return late_; }
  // Everything up to here has been visited.
  TimeNs released_until() const { return released_until_; }
  // Bytes of the kept batches: some of their records are not released yet.
  size_t held_bytes() const;

 private:
  // Records of equal time keep the order of arrival: batch, then index.
  struct Pending {
    TimeNs time;
    uint32_t batch;  // counted from the first batch of the capture
    uint32_t index;
    auto operator<=>(const Pending&) const = default;
  };
  struct HeldBatch {
    Batch batch;
    size_t unreleased = 0;
  };
  void release(TimeNs until, const Visit& visit);

  std::vector<Pending> pending_;
  std::deque<HeldBatch> held_;  // batches with unreleased records; the first is number first_held_
  uint32_t first_held_ = 0;
  uint64_t late_ = 0;
  TimeNs previous_round_ = INT64_MIN;
  TimeNs released_until_ = INT64_MIN;
};

}  // namespace assay::capture
