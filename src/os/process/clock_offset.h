// clock_ahead_ns: by how much a process sees another CLOCK_MONOTONIC than we do.
//
// Containers may have a time namespace; what a program inside it calls now is then another number.
// In: /proc. Out: its time minus ours; 0 where both are the same. Failures: the process is gone; a
// kernel without time namespaces says 0.
#pragma once

#include <cstdint>

#include <sys/types.h>

#include "os/process/procfs.h"

namespace assay::os {

Result<int64_t> clock_ahead_ns(const ProcFs& proc, pid_t pid);

}  // namespace assay::os
