#include "report/text/heap_words.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"
#include "report/text/words.h"

namespace assay::report {
namespace {

uint64_t rounded(double value) {
  return value > 0 ? static_cast<uint64_t>(std::llround(std::min(value, 9e18))) : 0;
}

double per_second(double value, const analysis::HeapSummary& heap) {
  return heap.window_ns > 0 ? value / (static_cast<double>(heap.window_ns) / 1e9) : 0;
}

}  // namespace

std::string bytes_text(double bytes) {
  return format_bytes(rounded(bytes));
}

std::string count_text(double count) {
  return format_count(rounded(count));
}

std::string rate_text(double bytes, const analysis::HeapSummary& heap) {
  return bytes_text(per_second(bytes, heap)) + "/s";
}

std::string growth_text(const analysis::HeapSite& site) {
  double growth = site.growth_bytes_per_s;
  if (std::abs(growth) < 1) return "0 B";
  return (growth < 0 ? "−" : "+") + bytes_text(std::abs(growth));
}

std::string lifetime_text(const analysis::HeapSite& site) {
  return site.freed_share > 0 ? format_duration(site.median_lifetime_ns) : "held";
}

std::string error_text(double error, const analysis::HeapSummary& heap) {
  bool known = heap.timed || heap.rate_bytes > 1;
  return known ? bytes_text(error) : "?";
}

const char* beside_title(const analysis::HeapSummary& heap, bool live) {
  if (heap.timed) return live ? "growth/s" : "lifetime";
  return live || !heap.live_known ? "of all" : "freed";
}

std::string beside_text(const analysis::HeapSite& site, const analysis::HeapSummary& heap,
                        bool live) {
  if (heap.timed) return live ? growth_text(site) : lifetime_text(site);
  if (!live && heap.live_known) return format_percent(site.freed_share);
  double part = live ? site.live.bytes : site.allocated.bytes;
  double whole = live ? heap.live.bytes : heap.allocated.bytes;
  return format_percent(whole > 0 ? part / whole : 0);
}

std::string heap_heading(const analysis::HeapSummary& heap) {
  if (!heap.timed) {
    std::string text = "sums of an imported profile, without times";
    if (heap.rate_bytes > 1)
      text += fmt::format("; sampled, one allocation per {} on average",
                          bytes_text(static_cast<double>(heap.rate_bytes)));
    return text;
  }
  return fmt::format("{} sampled allocations, one per {} on average",
                     grouped(heap.allocated.samples),
                     bytes_text(static_cast<double>(heap.rate_bytes)));
}

namespace {

// "1.5 MB ± 0.1 MB in 12 objects", as far as it is known.
std::string sum_text(const analysis::HeapAmount& amount, const analysis::HeapSummary& heap) {
  std::string text = bytes_text(amount.bytes);
  if (heap.rate_bytes > 1) text += " ± " + bytes_text(amount.bytes_error);
  if (amount.objects > 0) text += fmt::format(" in {} objects", count_text(amount.objects));
  return text;
}

std::vector<std::string> imported_phrases(const analysis::HeapSummary& heap) {
  std::vector<std::string> phrases;
  phrases.push_back(heap.live_known
                        ? "live when the profile was taken: " + sum_text(heap.live, heap)
                        : "what was live is not in the profile");
  phrases.push_back(heap.freed_known ? "allocated, freed or not: " + sum_text(heap.allocated, heap)
                                     : "what was allocated and freed before is not in the profile");
  phrases.push_back("peak, growth, lifetimes and leaks are not known: the profile has no times");
  return phrases;
}

}  // namespace

std::vector<std::string> heap_phrases(const analysis::Report& report) {
  const analysis::HeapSummary& heap = report.heap;
  if (!heap.timed) return imported_phrases(heap);
  std::vector<std::string> phrases;
  phrases.push_back(fmt::format(
      "live at the end: {} ± {} in {} objects; at its peak, {} after the start, {}",
      bytes_text(heap.live.bytes), bytes_text(heap.live.bytes_error), count_text(heap.live.objects),
      format_duration(heap.peak_ns), bytes_text(heap.peak_bytes)));
  phrases.push_back(fmt::format(
      "allocated: {} ± {} in {} ± {} objects, {} and {} objects a second",
      bytes_text(heap.allocated.bytes), bytes_text(heap.allocated.bytes_error),
      count_text(heap.allocated.objects), count_text(heap.allocated.objects_error),
      rate_text(heap.allocated.bytes, heap), count_text(per_second(heap.allocated.objects, heap))));
  auto requests = report.vitals.requests_per_s;
  if (requests && *requests > 0) {
    phrases.push_back(fmt::format("per request: {} in {:.1f} allocations",
                                  bytes_text(per_second(heap.allocated.bytes, heap) / *requests),
                                  per_second(heap.allocated.objects, heap) / *requests));
  }
  return phrases;
}

std::vector<std::string> heap_quality_phrases(const analysis::Report& report) {
  const analysis::HeapSummary& heap = report.heap;
  if (!heap.timed) {
    return {fmt::format("{} sums", grouped(std::max(heap.live.samples, heap.allocated.samples))),
            "complete stacks " + format_percent(heap.complete_share),
            "unresolved " + format_percent(heap.unresolved_share)};
  }
  return {fmt::format("{} sampled allocations", heap.allocated.samples),
          "lost " + format_percent(report.quality.lost_share),
          "complete stacks " + format_percent(heap.complete_share),
          "unresolved " + format_percent(heap.unresolved_share)};
}

std::vector<const analysis::HeapSite*> sites_by(const analysis::HeapSummary& heap, bool live,
                                                size_t most) {
  auto amount = [live](const analysis::HeapSite* site) {
    return live ? site->live.bytes : site->allocated.bytes;
  };
  std::vector<const analysis::HeapSite*> sites;
  for (const analysis::HeapSite& site : heap.sites) {
    if (amount(&site) > 0) sites.push_back(&site);
  }
  std::stable_sort(sites.begin(), sites.end(),
                   [&](const auto* a, const auto* b) { return amount(a) > amount(b); });
  if (sites.size() > most) sites.resize(most);
  return sites;
}

std::vector<const analysis::HeapSite*> leaking_sites(const analysis::HeapSummary& heap) {
  std::vector<const analysis::HeapSite*> sites;
  for (const analysis::HeapSite& site : heap.sites) {
    if (site.leaks) sites.push_back(&site);
  }
  std::stable_sort(sites.begin(), sites.end(),
                   [](const auto* a, const auto* b) { return a->old.bytes > b->old.bytes; });
  return sites;
}

}  // namespace assay::report
