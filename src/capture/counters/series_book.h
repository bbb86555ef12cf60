// SeriesBook: gives every polled number its series, and writes only the points at which a value
// changes.
//
// In: values with their time from the counter groups; out: series and points to a CounterSink. A
// value that did not change is held back; when it changes, or the window ends, the last time at
// which it was still the same is written first, so that the change is not spread over the time
// before. Threads: one. Ids come from a counter that others may share. Cannot fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/clock.h"
#include "model/run_info.h"
#include "model/series.h"

namespace assay::capture {

// Receives the counters: the run's writer, or a list of a test.
class CounterSink {
 public:
  virtual ~CounterSink() = default;
  virtual void add_series(const model::Series& series) = 0;
  virtual void add_point(const model::Point& point) = 0;
  virtual void add_note(const model::QualityNote& note) = 0;
  virtual void add_fact(const model::Fact& fact) = 0;  // replaces the same (scope, key)
};

struct SeriesSpec {
  model::SeriesScope scope;
  model::SeriesKind kind;
  const char* name;
  const char* unit;
};

// State of one series. It is registered with its first value.
struct Track {
  static constexpr uint32_t kUnregistered = std::numeric_limits<uint32_t>::max();
  uint32_t id = kUnregistered;
  bool held_back = false;  // `value` was seen again at `time_ns` and not written
  TimeNs time_ns = 0;
  int64_t value = 0;
};

class SeriesBook {
 public:
  SeriesBook(CounterSink& sink, std::atomic<uint32_t>& next_id) : sink_(sink), next_id_(next_id) {}

  void put(Track& track, const SeriesSpec& spec, uint32_t owner, std::string_view label,
           TimeNs time_ns, int64_t value);
  // The owner is gone: writes the last value that was held back.
  void settle(Track& track);
  // While on, unchanged values are written too: the first and the last poll of a window.
  void write_everything(bool on) { write_everything_ = on; }
  CounterSink& sink() { return sink_; }

 private:
  CounterSink& sink_;
  std::atomic<uint32_t>& next_id_;
  bool write_everything_ = false;
};

// The kernel's counters are unsigned; a value beyond int64 is wrong and is limited to the largest
// int64.
constexpr int64_t to_value(uint64_t value) {
  return value > uint64_t{INT64_MAX} ? INT64_MAX : static_cast<int64_t>(value);
}

}  // namespace assay::capture
