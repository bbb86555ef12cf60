// Records of the BPF programs' rings, gathered into a Batch; and how large the rings are.
//
// In: one record of a ring, as BpfRing hands it over. Out: an entry of the batch, or, where the
// reader cannot keep up (Pressure), one more dropped record: raw stacks go first, then samples;
// waits are always kept. Pure. Failures: a record without a whole head is counted as malformed.
#pragma once

#include <cstddef>
#include <span>

#include "capture/perf/batch.h"

namespace assay::capture {

void take_record(std::span<const std::byte> record, Pressure pressure, Batch& batch);

// Bytes of each of `rings` rings: an equal share of the budget, as a power of two between 256 KiB
// and 8 MiB.
size_t ring_bytes_of(size_t budget_bytes, size_t rings);

}  // namespace assay::capture
