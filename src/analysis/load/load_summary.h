// LoadSummary: what drove the server during a capture and how it answered.
//
// In: the series of scope `load` and the facts of scope "load" that the recorder stored. Out: plain
// numbers, per second and over the window; nullopt when the run has no load. Pure. Failures: the
// Reader's, unchanged; facts that are missing or are no numbers stay 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/reader.h"

namespace assay::analysis {

// One stretch between two points of the series, about a second.
struct LoadSecond {
  TimeNs begin_ns = 0, end_ns = 0;
  uint64_t requests = 0;  // finished in it, failed ones included
  uint64_t errors = 0;
  double per_second = 0;  // that succeeded
  int64_t p50_ns = 0, p90_ns = 0, p99_ns = 0, max_ns = 0;
  int64_t generator_cpu_ns = 0;
};

struct LoadSummary {
  std::string kind;  // "url", "command"
  std::string what;
  std::string mode;  // "closed", "open"; empty for a command, as the numbers below are 0
  uint32_t connections = 0, streams = 0;
  double rate = 0;
  uint64_t requests = 0, errors = 0;
  double throughput_per_s = 0;
  int64_t p50_ns = 0, p90_ns = 0, p99_ns = 0, max_ns = 0;
  bool generator_saturated = false;
  double generator_cpu_share = 0;
  uint32_t restarts = 0;
  std::string ended;   // "covered", "early: why", "failed: why"
  std::string output;  // the end of what a command printed

  // Throughput at the end of the window relative to its beginning, by a straight line through the
  // seconds: −0.2 is a fifth less. 0 with fewer than three seconds.
  double drift = 0;
  double drift_error = 0;  // half of its 95 % interval (Student's, for the few seconds there are)
  std::vector<LoadSecond> seconds;

  bool covered() const { return ended == "covered"; }
  bool measured() const { return kind == "url"; }
};

Result<std::optional<LoadSummary>> summarise_load(const run::Reader& reader);

// "closed loop, 8 connections: 2000 requests/s, p50 77 µs, p99 3.2 ms, no errors", for a header,
// beside what drove the server; empty for a command that covered the capture.
std::string load_figures(const LoadSummary& load);

}  // namespace assay::analysis
