// pprof in: profile.proto, gzipped or not, of Go, of Assay and of other writers.
//
// CPU time becomes samples; off-CPU time, contention and delays become waits; heap profiles become
// sums of allocations; other quantities (goroutines) become samples whose unit the run names. Time
// of a type that says neither is as the options say, else CPU time with a note. Labels that Assay
// writes (process, pid, role, thread, tid, pool) say whose time it is. Locations without a function
// keep module and address, to be named later. Failures: malformed bytes, with their offset; ids and
// names that refer to nothing; options that contradict what the types say.
#pragma once

#include "formats/import/reading.h"

namespace assay::formats {

bool looks_like_pprof(std::string_view unpacked);
Result<void> read_pprof(const Input& input, RunBuilder& builder, const ReadOptions& options = {});

}  // namespace assay::formats
