// Profiles as bytes, and bytes into files or sinks.
#pragma once

#include "assay/assay.h"
#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/cpu/cpu_profiler.h"

namespace assay::inproc {

bool write_cpu_profile(const CpuResult& result, assay_format format, ByteBuffer& out);

// 0, or fail() with a sentence. A file appears whole or not at all.
int deliver(const ByteBuffer& bytes, const assay_output& output);

}  // namespace assay::inproc
