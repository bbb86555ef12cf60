// Turns profiles into bytes, and writes bytes to files or callbacks.
#pragma once

#include "assay/assay.h"
#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/cpu/cpu_profiler.h"

namespace assay::inproc {

bool write_cpu_profile(const CpuResult& result, assay_format format, ByteBuffer& out);

// 0, or fail() with a sentence. A file is complete or does not exist.
int deliver(const ByteBuffer& bytes, const assay_output& output);

}  // namespace assay::inproc
