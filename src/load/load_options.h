// LoadOptions: the request to `assay load`; LoadResult: its result. Plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "load/result/tally.h"
#include "load/tls_context.h"
#include "load/workload.h"

namespace assay::load {

struct LoadOptions {
  std::string url;
  uint32_t connections = 8;
  uint32_t streams = 1;                     // per connection; HTTP/2 and gRPC
  uint64_t requests_per_client = 0;         // 0: until duration_ns
  int64_t duration_ns = 10 * kNsPerSecond;  // 0: until the requests are done or stop
  int64_t warmup_ns = 0;                    // sent before, not counted
  double rate = 0;                          // requests a second in all; 0: closed loop
  int64_t timeout_ns = 10 * kNsPerSecond;
  uint32_t threads = 1;
  bool http2 = false;
  std::string method;                    // empty: GET, or POST with a body
  std::vector<std::string> headers;      // "Name: value"
  std::optional<std::string> data;       // text with templates; of gRPC: JSON
  std::optional<std::string> raw;        // bytes as they are
  std::vector<std::string> proto_files;  // where gRPC's messages are described; none: ask the
  std::vector<std::string> proto_paths;  //   server. Paths: where imports are looked for
  TlsOptions tls;
  int64_t tick_ns = kNsPerSecond;
  uint64_t seed = 1;
};

// One interval of load, reported while it runs.
struct Tick {
  TimeNs begin = 0;
  TimeNs end = 0;
  bool warmup = false;
  Tally tally;
};

struct SecondRow {
  TimeNs end = 0;
  double seconds = 0;  // its length
  uint64_t ok = 0, failed = 0;
  int64_t p50_ns = 0, p90_ns = 0, p99_ns = 0, max_ns = 0;
  int64_t cpu_ns = 0;
};

struct LoadResult {
  Workload workload;
  std::string address;
  uint32_t connections = 0, streams = 0, threads = 1;
  double rate = 0;
  TimeNs begin = 0, end = 0;  // of what is counted
  Tally total;
  std::vector<SecondRow> series;  // warm-up left out
  uint64_t unanswered = 0;        // sent and still open at the end
  int64_t unanswered_oldest_ns = 0;
  uint64_t unsent = 0;  // open loop: due and never sent

  double seconds() const { return static_cast<double>(end - begin) / 1e9; }
  double throughput() const { return end > begin ? static_cast<double>(total.ok) / seconds() : 0; }
  double cpu_share() const;   // of the busiest worker thread
  double wait_share() const;  // the same thread, ready and without a CPU
  // Why the generator itself was the limit; empty when it was not.
  std::string saturated() const;
};

}  // namespace assay::load
