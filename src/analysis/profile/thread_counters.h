// The kernel's own account of a thread, as polled beside the samples.
//
// In: a Reader's series of scope thread ("run", "run_delay", "utime", "stime", cumulative, ns)
// and of scope self. Out: how much each grew inside the window, and between which two readings.
// Failures: the Reader's.
#pragma once

#include <optional>
#include <vector>

#include "run/reader.h"

namespace assay::analysis {

// A counter's growth between its first and last reading inside a range.
struct Growth {
  TimeNs begin_ns = 0;
  TimeNs end_ns = 0;
  int64_t by = 0;
};

struct ThreadCounters {
  std::optional<Growth> run_ns;     // schedstat: time on a CPU
  std::optional<Growth> run_delay;  // schedstat: time runnable without a CPU
  std::optional<Growth> utime;
  std::optional<Growth> stime;
};

// What Assay itself used while it captured; absent where the run does not say.
struct OwnCost {
  std::optional<int64_t> cpu_ns;
  std::optional<int64_t> peak_rss_bytes;
};

// Needs two readings at different times; a counter that shrank (a reused id) is not trusted.
std::optional<Growth> growth_of(const std::vector<model::Point>& points, TimeNs begin_ns,
                                TimeNs end_ns);

// By thread index.
Result<std::vector<ThreadCounters>> read_thread_counters(const run::Reader& reader);
Result<OwnCost> read_own_cost(const run::Reader& reader);

}  // namespace assay::analysis
