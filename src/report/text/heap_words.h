// Phrases about the heap that text and Markdown share.
#pragma once

#include <string>
#include <vector>

#include "analysis/report.h"

namespace assay::report {

// A heap profile that knows nothing of time.
inline bool is_heap_only(const analysis::Report& report) {
  return is_heap_alone(report.run_kind);
}

std::string bytes_text(double bytes);  // 1.5 MB; rounded, never negative
std::string count_text(double count);
std::string rate_text(double bytes, const analysis::HeapSummary& heap);  // 1.5 MB/s over the window
std::string growth_text(const analysis::HeapSite& site);                 // +1.5 MB, per second
std::string lifetime_text(const analysis::HeapSite& site);               // median, or "held"
std::string error_text(double error, const analysis::HeapSummary& heap);  // or that it is not known

// What stands beside the amounts of sites: growth and lifetimes; shares, where nothing is known of
// time.
const char* beside_title(const analysis::HeapSummary& heap, bool live);
std::string beside_text(const analysis::HeapSite& site, const analysis::HeapSummary& heap,
                        bool live);
// How many, and how they were taken.
std::string heap_heading(const analysis::HeapSummary& heap);

// The quality line of a profile of the heap alone.
std::vector<std::string> heap_quality_phrases(const analysis::Report& report);

// Sentences: live heap, allocations, peak, per request.
std::vector<std::string> heap_phrases(const analysis::Report& report);

// The heaviest sites by live or by allocated bytes; none without any.
std::vector<const analysis::HeapSite*> sites_by(const analysis::HeapSummary& heap, bool live,
                                                size_t most);
std::vector<const analysis::HeapSite*> leaking_sites(const analysis::HeapSummary& heap);

}  // namespace assay::report
