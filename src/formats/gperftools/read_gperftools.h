// gperftools profiles in: CPU profiles (binary) and heap profiles (text).
//
// CPU: native words 0, 3, 0, period µs, 0; records count, depth, pcs leaf first; trailer 0, 1, 0;
// then maps. Callers' pcs are return addresses. Out: untimed samples of one thread with frames to
// be named by module and address.
//
// Heap: also jemalloc's, and what Go and libassay answer to heap?debug=1. Every pc is a return address; lines with
// '#' name the functions of the row before them; sampled profiles (heap_v2/RATE, heap/RATE) are
// scaled up as pprof does. Out: sums of live and of allocated bytes and objects by stack; the maps.
//
// Failures: malformed or truncated data with its offset.
#pragma once

#include "formats/import/reading.h"

namespace assay::formats {

bool looks_like_gperftools_cpu(std::string_view bytes);
bool looks_like_gperftools_heap(std::string_view bytes);
Result<void> read_gperftools_cpu(const Input& input, RunBuilder& builder);
Result<void> read_gperftools_heap(const Input& input, RunBuilder& builder);

}  // namespace assay::formats
