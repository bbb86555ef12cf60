// gperftools profiles in: CPU profiles (binary) and heap profiles (text).
//
// CPU: native words 0, 3, 0, period µs, 0; records count, depth, pcs leaf first; trailer 0, 1, 0;
// then maps. Callers' pcs are return addresses. Heap: every pc is a return address; sampled
// profiles (heap_v2/RATE) are scaled up as pprof does; the weights are bytes in use. Out: untimed
// samples of one thread with frames to be named by module and address. Failures: malformed or
// truncated data with its offset.
#pragma once

#include "formats/reading.h"

namespace assay::formats {

bool looks_like_gperftools_cpu(std::string_view bytes);
bool looks_like_gperftools_heap(std::string_view bytes);
Result<void> read_gperftools_cpu(const Input& input, RunBuilder& builder);
Result<void> read_gperftools_heap(const Input& input, RunBuilder& builder);

}  // namespace assay::formats
