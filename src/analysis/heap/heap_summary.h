// HeapSummary: what a run's sampled allocations say: what lives, what was allocated and where, how
// it grew, how long it lived.
//
// Every sample is weighted by itself (model/heap/heap.h) and then summed; each sum carries the 95 %
// half-width of its sampling error, √Σ x²(1 − p)/p² times 1.96 for samples taken with chance p.
// What lived before sampling began is not known and not in any figure.
//
// Of an imported profile there are sums instead of samples: no times, so no peak, growth, lifetimes
// or leaks; errors only where the profile tells its rate, by the mean size of each sum. In: a
// run::Reader, the tree of its stacks and which threads are asked for. Out: sites, heaviest first.
// Failures: the Reader's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/profile/call_tree.h"
#include "base/result.h"
#include "run/reader.h"

namespace assay::analysis {

struct HeapAmount {
  double bytes = 0, objects = 0;
  double bytes_error = 0, objects_error = 0;  // ± with 95 % confidence
  uint64_t samples = 0;                       // or sums, of an imported profile
};

// One source line that allocates, with all its callers together.
struct HeapSite {
  std::string function;
  std::string module;
  std::string file;
  uint32_t line = 0;
  bool named = true;
  HeapAmount live;                 // at the end of the window
  HeapAmount allocated;            // over the window
  HeapAmount old;                  // of `live`: old enough to be suspect
  double freed_share = 0;          // of what was allocated, by bytes
  int64_t median_lifetime_ns = 0;  // of what was freed; 0: nothing was
  int64_t p90_lifetime_ns = 0;
  std::vector<double> growth;  // live bytes at each time of HeapSummary::marks
  bool leaks = false;          // grew at every mark, keeps most of it, and old enough
  double growth_bytes_per_s = 0;
  // Leaf first, from the site on: of the stack that holds most for long, else allocates most.
  std::vector<FrameText> frames;
};

struct HeapThread {
  std::string name;
  pid_t tid = 0;
  std::string pool;
  HeapAmount allocated;
};

struct HeapPoint {
  TimeNs time = 0;
  double live_bytes = 0, live_objects = 0;
};

// Live bytes or allocated bytes that one stack of the run stands for.
struct HeapStack {
  model::StackId stack;
  HeapAmount live, allocated;
};

struct HeapSummary {
  bool present = false;
  bool timed = true;       // else of an imported profile: nothing below that is about time is known
  bool live_known = true;  // else `live` is empty everywhere
  bool freed_known = true;  // else `allocated` is empty everywhere
  int64_t window_ns = 0;
  uint64_t rate_bytes = 0;     // mean bytes between samples, as most samples had it
  double mean_rate_bytes = 0;  // the same, as the average byte had it; 0: not known
  HeapAmount live, allocated;
  double peak_bytes = 0;
  TimeNs peak_ns = 0;               // since the window began
  int64_t young_ns = 0;             // what is younger than this at the end is no suspect
  std::vector<TimeNs> marks;        // since the window began: snapshots, or quarters of the window
  std::vector<HeapPoint> timeline;  // since the window began
  std::vector<HeapSite> sites;      // by live bytes, then allocated bytes
  std::vector<HeapThread> threads;  // by allocated bytes
  std::vector<HeapStack> stacks;    // in order of first sight
  size_t sites_in_all = 0;
  double complete_share = 0, unresolved_share = 0;  // of allocated bytes, by their stacks
};

Result<HeapSummary> summarise_heap(const run::Reader& reader, const CallTree& tree,
                                   const std::vector<bool>& threads, size_t most_sites);

}  // namespace assay::analysis
