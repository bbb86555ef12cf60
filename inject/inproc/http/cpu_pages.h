// The pages that run the CPU profiler for a while: profile, and trace (a timeline).
#pragma once

#include "assay/assay.h"
#include "inject/inproc/http/http_server.h"

namespace assay::inproc {

inline constexpr int64_t kMaxSeconds = 3600;

// A profile over `seconds` of the query into the body. False: an error was answered.
bool profile_cpu(HttpExchange& exchange, assay_format format);

// Every sample with its time, as trace-event JSON for ui.perfetto.dev, the Firefox Profiler or
// speedscope.
void answer_trace(HttpExchange& exchange);

}  // namespace assay::inproc
