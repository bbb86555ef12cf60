// Tally: counts and latencies of one interval of load, and the sum of several.
//
// A worker counts into a Tally and passes it on at every tick; the generator adds them up. Latency
// is that of requests that succeeded, and of those that timed out with the time they had waited;
// error answers are left out, because many servers send them quickly and they would make latency
// look better. A value; no threads.
#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "load/result/histogram.h"
#include "load/result/outcome.h"

namespace assay::load {

struct Tally {
  uint64_t ok = 0;
  uint64_t failed = 0;
  uint64_t messages = 0;  // of gRPC answers
  uint64_t bytes_in = 0;  // as they came from the socket, headers and framing included
  uint64_t connects = 0;  // connections made
  uint64_t retried = 0;  // requests that the server refused without processing (GOAWAY), sent again
  std::map<Outcome, uint64_t> errors;
  std::string first_protocol_fault;  // in words
  Histogram latency;
  Histogram lag;  // open loop: how late the generator itself sent although a connection was free
  int64_t cpu_ns = 0;                               // of the worker threads
  int64_t cpu_wait_ns = 0;                          // ready to run and not running
  int64_t busiest_cpu_ns = 0, busiest_wait_ns = 0;  // of the busiest worker

  uint64_t finished() const { return ok + failed; }
  void count(const Outcome& outcome, int64_t latency_ns) {
    if (outcome.ok()) {
      ++ok;
      latency.record(latency_ns);
      return;
    }
    ++failed;
    ++errors[outcome];
    if (outcome.kind == OutcomeKind::timeout) latency.record(latency_ns);
  }
  void add(const Tally& other);
};

}  // namespace assay::load
