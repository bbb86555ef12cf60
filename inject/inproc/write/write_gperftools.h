// gperftools' formats: the binary CPU profile (words, then the maps) and the heap profile's text.
//
// Addresses are raw: its readers take names from the program's file, or ask /pprof/symbol.
#pragma once

#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/cpu/cpu_profiler.h"
#include "inject/inproc/write/profile.h"

namespace assay::inproc {

bool write_gperftools_cpu(const CpuResult& result, ByteBuffer& out);
// A heap profile (values: alloc_objects, alloc_space, inuse_objects, inuse_space), unscaled:
// estimates.
bool write_gperftools_heap(const Profile& heap, ByteBuffer& out);
// Lock waits (values: contentions, nanoseconds).
bool write_gperftools_contention(const Profile& waits, ByteBuffer& out);

}  // namespace assay::inproc
