// Series: numbers polled beside the samples (CPU time, memory, queues, throttling, load).
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "model/ids.h"

namespace assay::model {

enum class SeriesScope : uint8_t {
  host = 0,
  process = 1,
  thread = 2,
  cgroup = 3,
  socket = 4,
  load = 5,
  self = 6
};
enum class SeriesKind : uint8_t {
  gauge = 0,       // a level: RSS, queue length
  cumulative = 1,  // a counter that only grows: utime, faults; use differences
};

struct Series {
  SeriesId id;
  SeriesScope scope = SeriesScope::host;
  SeriesKind kind = SeriesKind::gauge;
  uint32_t owner = 0;  // ProcessId or ThreadId value by scope; 0 for host, cgroup and self
  std::string name;    // "utime", "stime", "run_delay", "rss", "recv_q", …
  std::string unit;    // "ns", "bytes", "count", "share"
  std::string label;   // the object, when the owner does not say it: "127.0.0.1:8000 listen"
};

struct Point {
  SeriesId series;
  TimeNs time = 0;
  int64_t value = 0;
};

}  // namespace assay::model
