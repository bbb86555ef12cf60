#include "analysis/heap/heap_findings.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "analysis/wording.h"
#include "base/units.h"

namespace assay::analysis {
namespace {

constexpr double kLeakShare = 0.02;    // of the live heap
constexpr double kLateGrowth = 0.15;   // of the growth since the first quarter, in the last quarter
constexpr double kGrowthShare = 0.25;  // of the live heap, gained between the first and last mark
constexpr double kChurnShare = 0.30;   // of all allocated bytes, by one site
constexpr double kChurnBytesPerS = 50e6;  // below this an allocator does not notice
constexpr double kChurnObjectsPerS = 100e3;
constexpr int64_t kShortLifeNs = 10 * kNsPerMs;
constexpr double kAllocatorCpu = 0.10;
constexpr size_t kMostLeaks = 5;

std::string bytes(double value) {
  return format_bytes(static_cast<uint64_t>(std::llround(std::max(0.0, value))));
}
std::string count(double value) {
  return format_count(static_cast<uint64_t>(std::llround(std::max(0.0, value))));
}

double seconds(const HeapSummary& heap) {
  return std::max(static_cast<double>(heap.window_ns) / 1e9, 1e-9);
}

// A share of a sum that itself is an estimate, with what the samples allow.
Estimate share_of(const HeapAmount& part, const HeapAmount& whole) {
  if (whole.bytes <= 0) return {};
  Estimate share;
  share.share = std::clamp(part.bytes / whole.bytes, 0.0, 1.0);
  share.low = std::clamp((part.bytes - part.bytes_error) / whole.bytes, 0.0, share.share);
  share.high = std::clamp((part.bytes + part.bytes_error) / whole.bytes, share.share, 1.0);
  return share;
}

Diagnosis at(const HeapSite& site, std::string_view id, std::string evidence) {
  Diagnosis finding;
  finding.id = id;
  finding.cause = Cause::memory;
  finding.where = {site.function, site.file, site.line};
  finding.evidence.push_back({std::move(evidence), site.frames, {}, 0});
  return finding;
}

std::string amount_text(const HeapAmount& amount) {
  return fmt::format("{} ± {} in {} objects ({} samples)", bytes(amount.bytes),
                     bytes(amount.bytes_error), count(amount.objects), amount.samples);
}

void find_leaks(const HeapSummary& heap, std::vector<Diagnosis>& out) {
  std::vector<const HeapSite*> leaks;
  for (const HeapSite& site : heap.sites) {
    if (site.leaks && site.old.bytes >= kLeakShare * heap.live.bytes) leaks.push_back(&site);
  }
  std::stable_sort(leaks.begin(), leaks.end(),
                   [](const auto* a, const auto* b) { return a->old.bytes > b->old.bytes; });
  if (leaks.size() > kMostLeaks) leaks.resize(kMostLeaks);
  for (const HeapSite* site : leaks) {
    Diagnosis f =
        at(*site, kHeapLeak,
           fmt::format("held and older than {}: {}; growing by {} a second; {} of what it "
                       "allocated was freed",
                       format_duration(heap.young_ns), amount_text(site->old),
                       bytes(site->growth_bytes_per_s), format_percent(site->freed_share)));
    f.title = fmt::format("{} leaks, or keeps for very long", site->function);
    f.of = ShareOf::live_heap;
    f.share = share_of(site->old, heap.live);
    f.because =
        "what this line allocates is kept: it grew from mark to mark while the profile ran, "
        "and memory that only grows ends in an out-of-memory error";
    f.recommendation =
        "free it where its owner ends, or bound the cache that holds it; profile for "
        "longer if this was a warm-up";
    out.push_back(std::move(f));
  }
}

// The least that was alive in one quarter of the window. A heap that rises and falls again has a
// floor that stays.
double floor_of(const HeapSummary& heap, size_t quarter) {
  size_t points = heap.timeline.size();
  auto begin = heap.timeline.begin() + static_cast<ptrdiff_t>(points * quarter / 4);
  auto end = heap.timeline.begin() + static_cast<ptrdiff_t>(points * (quarter + 1) / 4);
  return std::min_element(
             begin, end,
             [](const HeapPoint& a, const HeapPoint& b) { return a.live_bytes < b.live_bytes; })
      ->live_bytes;
}

double first_quarter(const HeapSummary& heap) {
  return heap.timeline[heap.timeline.size() / 4].live_bytes;
}

void find_growth(const HeapSummary& heap, std::vector<Diagnosis>& out) {
  bool is_told =
      std::any_of(out.begin(), out.end(), [](const Diagnosis& f) { return f.id == kHeapLeak; });
  if (heap_trend(heap) != HeapTrend::growing || is_told || heap.sites.empty()) return;
  double first = first_quarter(heap), last = heap.timeline.back().live_bytes;
  auto most = std::max_element(heap.sites.begin(), heap.sites.end(),
                               [](const HeapSite& a, const HeapSite& b) {
                                 return a.growth_bytes_per_s < b.growth_bytes_per_s;
                               });
  Diagnosis f =
      at(*most, kHeapGrowth,
         fmt::format("the live heap went from {} to {} in the last three quarters of the "
                     "window; {} here: {}",
                     bytes(first), bytes(last), largest_part(share_of(most->live, heap.live).share),
                     amount_text(most->live)));
  f.title = "the heap grew all the time";
  f.of = ShareOf::live_heap;
  f.share = share_of(most->live, heap.live);
  f.because = "what is allocated is kept: together the lines hold more and more";
  f.recommendation =
      "profile for longer: a heap that levels off was warming up, one that goes on "
      "growing has a cache without a bound or a leak";
  out.push_back(std::move(f));
}

void find_churn(const HeapSummary& heap, const Vitals& vitals, std::vector<Diagnosis>& out) {
  bool allocator_bound = vitals.allocator_cpu.value_or(0) >= kAllocatorCpu;
  bool is_much = heap.allocated.bytes / seconds(heap) >= kChurnBytesPerS ||
                 heap.allocated.objects / seconds(heap) >= kChurnObjectsPerS;
  if (!is_much && !allocator_bound) return;
  for (const HeapSite& site : heap.sites) {
    Estimate share = share_of(site.allocated, heap.allocated);
    bool is_short = site.freed_share > 0.5 && site.median_lifetime_ns < kShortLifeNs;
    if (!is_short || share.share < kChurnShare || share.low < kChurnShare * 2 / 3) continue;
    Diagnosis f =
        at(site, kHeapChurn,
           fmt::format("{} a second in {} allocations, {} of them freed, half within {}{}",
                       bytes(site.allocated.bytes / seconds(heap)),
                       count(site.allocated.objects / seconds(heap)),
                       format_percent(site.freed_share), format_duration(site.median_lifetime_ns),
                       allocator_bound ? fmt::format("; the allocator takes {} of the CPU",
                                                     format_percent(*vitals.allocator_cpu))
                                       : ""));
    f.title = fmt::format("{} allocates and frees all the time", site.function);
    f.of = ShareOf::allocated_bytes;
    f.share = share;
    f.because =
        "memory that lives for microseconds costs a trip to the allocator and cold cache "
        "lines each time";
    f.recommendation =
        "reuse a buffer (a member, thread_local, an arena), reserve() before filling, "
        "or pass a view instead of a copy";
    out.push_back(std::move(f));
  }
}

}  // namespace

HeapTrend heap_trend(const HeapSummary& heap) {
  if (heap.timeline.size() < 4 || heap.live.bytes <= 0) return HeapTrend::steady;
  double last = heap.timeline.back().live_bytes;
  double grown = last - first_quarter(heap);
  // One that has levelled off was warming up: the last quarter must still have its part.
  double late = last - heap.timeline[heap.timeline.size() * 3 / 4].live_bytes;
  bool rises = floor_of(heap, 1) < floor_of(heap, 2) && floor_of(heap, 2) < floor_of(heap, 3);
  if (!rises || grown <= kGrowthShare * last || late <= kLateGrowth * grown)
    return HeapTrend::steady;
  // A difference has the errors of both its sides.
  bool is_certain = grown > std::numbers::sqrt2 * heap.live.bytes_error;
  return is_certain ? HeapTrend::growing : HeapTrend::perhaps_growing;
}

std::vector<Diagnosis> heap_findings(const HeapSummary& heap, const Vitals& vitals) {
  std::vector<Diagnosis> findings;
  if (!heap.present || !heap.timed) return findings;  // all of them are about time
  find_leaks(heap, findings);
  find_growth(heap, findings);
  find_churn(heap, vitals, findings);
  return findings;
}

}  // namespace assay::analysis
