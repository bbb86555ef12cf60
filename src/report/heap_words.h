// Phrases about the heap that text and Markdown share.
#pragma once

#include <string>
#include <vector>

#include "analysis/report.h"

namespace assay::report {

// A heap profile that knows nothing of time.
inline bool is_heap_only(const analysis::Report& report) {
  return report.info.backend == "heap";
}

std::string bytes_text(double bytes);  // 1.5 MB; rounded, never negative
std::string count_text(double count);
std::string rate_text(double bytes, const analysis::HeapSummary& heap);  // 1.5 MB/s over the window
std::string growth_text(const analysis::HeapSite& site);                 // +1.5 MB, per second
std::string lifetime_text(const analysis::HeapSite& site);               // median, or "held"

// The quality line of a profile of the heap alone.
std::vector<std::string> heap_quality_phrases(const analysis::Report& report);

// Sentences: live heap, allocations, peak, per request.
std::vector<std::string> heap_phrases(const analysis::Report& report);

// The heaviest sites by live or by allocated bytes; none without any.
std::vector<const analysis::HeapSite*> sites_by(const analysis::HeapSummary& heap, bool live,
                                                size_t most);
std::vector<const analysis::HeapSite*> leaking_sites(const analysis::HeapSummary& heap);

}  // namespace assay::report
