// TickLine: one line that a load process sends to the recorder that started it.
//
//   plan closed 8 1 0                     mode, connections, streams, rate
//   tick END_NS OK FAILED CPU_NS WAIT_NS MAX_NS  bucket:count … Lbucket:count …
//   error no connection to 127.0.0.1:8000
//
// The buckets are the latency Histogram's; those with an L are of the sender's own lag. Private to
// Assay: both ends are the same program. Parsing is bounds-checked all the same; a line that is not
// understood is nullopt.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "load/load_options.h"

namespace assay::load {

struct PlanLine {
  bool open_loop = false;
  uint32_t connections = 0;
  uint32_t streams = 0;
  double rate = 0;
};

struct TickLine {
  TimeNs end = 0;
  uint64_t ok = 0;
  uint64_t failed = 0;
  int64_t cpu_ns = 0;   // of the busiest thread; the only one by default
  int64_t wait_ns = 0;  // the same thread, ready and without a CPU
  Histogram latency;
  Histogram lag;
};

struct ErrorLine {
  std::string text;
};

using ReportLine = std::variant<PlanLine, TickLine, ErrorLine>;

std::string format_line(const PlanLine& plan);
std::string format_line(const Tick& tick);
std::string format_line(const ErrorLine& error);
std::optional<ReportLine> parse_line(std::string_view line);

}  // namespace assay::load
