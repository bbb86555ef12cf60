// Firefox Profiler: the processed profile format, version 48 (profiler.firefox.com lifts it).
//
// In: a SelectedRun. Out: per thread its on-CPU samples in time with CPU deltas, frames with
// inlines and categories, and its longest waits as markers with kind, system call and stack.
// Threads have tables of their own, as that version demands. Failures: the Reader's. Spec:
// docs-developer/CHANGELOG-formats.md of firefox-devtools/profiler.
#pragma once

#include "formats/export/output.h"
#include "formats/export/selected_run.h"

namespace assay::formats {

inline constexpr int kFirefoxVersion = 48;
inline constexpr size_t kFirefoxMarkersPerThread = 10'000;  // the longest waits

Result<void> write_firefox(SelectedRun& run, Output& output);

}  // namespace assay::formats
