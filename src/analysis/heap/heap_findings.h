// Findings about memory: leaks, growth, churn, and which lines keep an allocator-bound server busy.
//
// In: a Report with its heap and vitals. Out: findings to be added to the others, each with its
// line and its stack. A leak needs samples enough for its lower bound to be above nothing. Pure;
// never fails.
#pragma once

#include <vector>

#include "analysis/report.h"

namespace assay::analysis {

std::vector<Diagnosis> heap_findings(const Report& report);

// Whether what lives grew all along: for certain, or as far as so few samples can tell.
enum class HeapTrend { steady, perhaps_growing, growing };
HeapTrend heap_trend(const HeapSummary& heap);

}  // namespace assay::analysis
