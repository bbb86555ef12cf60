#include "analysis/heap/heap_findings.h"

#include <gmock/gmock.h>

namespace assay::analysis {
namespace {

// A heap with one site and so much alive at each mark.
HeapSummary with_timeline(const std::vector<double>& live) {
  HeapSummary heap;
  heap.present = true;
  for (size_t i = 0; i < live.size(); ++i) {
    heap.timeline.emplace_back();
    heap.timeline.back().time = static_cast<TimeNs>(i) * kNsPerSecond;
    heap.timeline.back().live_bytes = live[i];
  }
  heap.live.bytes = live.back();
  heap.live.bytes_error = live.back() / 20;
  HeapSite site;
  site.function = "grow";
  site.live = heap.live;
  site.growth_bytes_per_s = 1;
  heap.sites.push_back(site);
  return heap;
}

bool tells_growth(const std::vector<double>& live) {
  for (const Diagnosis& finding : heap_findings(with_timeline(live), {}))
    if (finding.id == kHeapGrowth) return true;
  return false;
}

TEST(HeapGrowth, IsToldOfAHeapThatGoesOnGrowing) {
  EXPECT_TRUE(tells_growth({1e6, 2e6, 3e6, 4e6, 5e6, 6e6, 7e6, 8e6}));
}

TEST(HeapGrowth, IsNotToldOfOneThatLevelledOff) {
  EXPECT_FALSE(tells_growth({1e6, 2e6, 3e6, 6e6, 8e6, 8e6, 8e6, 8e6}));
  EXPECT_FALSE(tells_growth({1e6, 2e6, 3e6, 8e6, 9e6, 8.5e6, 8.3e6, 8e6}));
}

TEST(HeapGrowth, IsNotToldOfOneThatRisesAndFalls) {
  EXPECT_FALSE(tells_growth({2e6, 6e6, 2e6, 6e6, 2e6, 6e6, 2e6, 6e6}));
}

}  // namespace
}  // namespace assay::analysis
