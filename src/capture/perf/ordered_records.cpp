#include "capture/perf/ordered_records.h"

#include <algorithm>

namespace assay::capture {

void OrderedRecords::add(Batch batch, const Visit& visit) {
  TimeNs round = batch.drained_at;
  auto number = static_cast<uint32_t>(first_held_ + held_.size());
  pending_.reserve(pending_.size() + batch.entries.size());
  for (uint32_t i = 0; i < batch.entries.size(); ++i) {
    TimeNs time = batch.entries[i].time;
    if (time < released_until_) ++late_;
    pending_.push_back({time, number, i});
  }
  size_t count = batch.entries.size();
  held_.push_back({std::move(batch), count});
  release(previous_round_, visit);
  previous_round_ = round;
}

void OrderedRecords::flush(const Visit& visit) {
  release(INT64_MAX, visit);
}

void OrderedRecords::release(TimeNs until, const Visit& visit) {
  auto end = std::partition(pending_.begin(), pending_.end(),
                            [until](const Pending& p) { return p.time <= until; });
  std::sort(pending_.begin(), end);
  for (auto it = pending_.begin(); it != end; ++it) {
    HeldBatch& held = held_[it->batch - first_held_];
    visit(held.batch.record(held.batch.entries[it->index]));
    // Freed here and not together with its place in the queue: a record with a time far ahead may
    // keep that place for long.
    if (--held.unreleased == 0) held.batch = {};
  }
  if (until != INT64_MAX) released_until_ = std::max(released_until_, until);
  pending_.erase(pending_.begin(), end);
  while (!held_.empty() && held_.front().unreleased == 0) {
    held_.pop_front();
    ++first_held_;
  }
}

size_t OrderedRecords::held_bytes() const {
  size_t bytes = 0;
  for (const HeldBatch& held : held_) bytes += held.batch.bytes.size();
  return bytes;
}

}  // namespace assay::capture
