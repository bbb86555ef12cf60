// Findings about memory: leaks, growth, churn, and which lines keep an allocator-bound server busy.
//
// In: the heap of a run and its vitals. Out: findings to be added to the others, each with its line
// and its stack. A leak needs samples enough for its lower bound to be above nothing. Pure;
// never fails.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/report.h"

namespace assay::analysis {

// Their ids: no rule file has one of these.
inline constexpr std::string_view kHeapLeak = "heap-leak";
inline constexpr std::string_view kHeapGrowth = "heap-growth";
inline constexpr std::string_view kHeapChurn = "heap-churn";

std::vector<Diagnosis> heap_findings(const HeapSummary& heap, const Vitals& vitals);

// Whether what lives grew all along: for certain, or as far as so few samples can tell.
enum class HeapTrend { steady, perhaps_growing, growing };
HeapTrend heap_trend(const HeapSummary& heap);

}  // namespace assay::analysis
