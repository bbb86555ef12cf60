// Makes pages of another process readable for the kernel's copies.
//
// A page of a stack that was never written (the middle of a large local buffer) is not in memory,
// and a copy taken at a sample ends there. Reading one byte of it once maps the kernel's shared
// page of zeroes: no memory is allocated and the process cannot tell. Threads: safe everywhere.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace assay::os {

// Reads one byte of each page in [begin, end), 64 pages at most. What cannot be read is left alone.
void touch_pages(pid_t pid, uint64_t begin, uint64_t end);

}  // namespace assay::os
