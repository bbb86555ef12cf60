// Samples in time order as trace-event JSON: nested spans of functions for each thread.
//
// Neighbouring samples of a thread that share their outer frames become one span for each of those;
// a pause between samples longer than kGapPeriods ends all spans (the thread was not on a CPU).
// Read by ui.perfetto.dev, chrome://tracing, the Firefox Profiler and speedscope.
#pragma once

#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/cpu/cpu_profiler.h"

namespace assay::inproc {

inline constexpr int64_t kGapPeriods = 5;

// False: no memory.
bool write_timeline(const CpuResult& result, Arena& arena, ByteBuffer& out);

void append_json_text(const char* text, ByteBuffer& out);

}  // namespace assay::inproc
