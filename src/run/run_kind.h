// RunKind: what a run contains, and which tool recorded it. The only place that decides this.
//
// In: a run's Contents. Out: its kind, what follows from the kind, and the unit of what an imported
// profile counts where that is no time. Pure; never fails.
#pragma once

#include <cstdint>
#include <string>

namespace assay::run {

struct Contents;

enum class RunKind : uint8_t {
  recorded,         // by Assay: the time of threads
  heap,             // by Assay: the heap and nothing of time
  imported_time,    // by another tool: time, or what grows with it (samples, cycles)
  imported_counts,  // by another tool: something that is no time (bytes, goroutines, page faults)
  imported_heap,    // by another tool: a heap profile and nothing of time
};

RunKind run_kind(const Contents& contents);

// Another tool made the profile and `assay import` brought it in.
constexpr bool is_imported(RunKind kind) {
  return kind == RunKind::imported_time || kind == RunKind::imported_counts ||
         kind == RunKind::imported_heap;
}
// A heap profile, taken or imported, and nothing of time.
constexpr bool is_heap_alone(RunKind kind) {
  return kind == RunKind::heap || kind == RunKind::imported_heap;
}
// What its samples count is neither time nor stands for it.
constexpr bool is_of_counts(RunKind kind) {
  return kind == RunKind::imported_counts;
}

// "bytes", "goroutine", "page-faults": what a run of counts counts; empty for every other run.
std::string counted_unit(const Contents& contents);

}  // namespace assay::run
