// Facts about a run itself: how and on which machine it was recorded, and what limits its evidence.
#pragma once

#include <string>

#include "base/clock.h"

namespace assay::model {

// Known at the start except window_end_ns, end_reason and finished, which the end of the capture
// sets.
struct RunInfo {
  std::string assay_version;
  std::string backend;           // "bpf", "perf_event"
  std::string target;            // as asked for: "--port 8000"
  std::string command_line;      // Assay's own
  std::string oncpu_event;       // "cycles", "cpu-clock"
  int64_t sample_period_ns = 0;  // nominal CPU time between on-CPU samples
  TimeNs window_begin_ns = 0;    // CLOCK_MONOTONIC
  TimeNs window_end_ns = 0;      // last flush while the capture runs
  int64_t utc_begin_ns = 0;      // wall-clock time of window_begin_ns
  std::string end_reason;        // "time", "interrupted", "target exited", "disk full", …
  bool finished = false;         // false: the capture was killed; the data up to then are right
};

// A static fact: ("host", "kernel", "6.18.1"), ("process 3", "compiler_flags", "-O2 …").
struct Fact {
  std::string scope;
  std::string key;
  std::string value;
};

// One limit of the evidence, in words, with the step that removes it.
struct QualityNote {
  std::string topic;   // "kernel stacks", "rings", "wake-ups"
  std::string text;    // what is limited and what it costs
  std::string remedy;  // exact command; empty when there is none
};

}  // namespace assay::model
