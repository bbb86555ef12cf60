// RunValues: what one run brings to a comparison: totals, and its column of the UnionTree.
//
// Parts that a run does not have (load, locks, counters, heap) stay empty; what measures.h makes of
// them is left out then. Heap figures are those of counted_parts.h's table, so that a profile of
// the heap adds a row there and nothing else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/call_tree.h"
#include "analysis/compare/union_tree.h"
#include "analysis/thread_time.h"
#include "base/result.h"
#include "run/reader.h"

namespace assay::analysis {

struct RunValues {
  std::string path;
  model::RunInfo info;
  size_t column = 0;  // in the UnionTree
  double seconds = 0;
  double requests = 0;  // answered in the window; 0: load was not measured
  double errors = 0;
  double cpu_ns = 0;  // the kernel's account of running time
  TimeSplit time;
  uint64_t samples = 0;
  uint64_t waits = 0;
  double lost_share = 0;
  std::optional<double> latency_p50_ns, latency_p90_ns, latency_p99_ns;
  std::map<std::string, double> category_ns;  // CPU time by subsystem
  std::map<std::string, double> lock_ns;      // waited for, by the lock's name
  std::map<std::string, double> counted;      // by counted_parts()'s id
  std::map<std::string, std::string> facts;   // "scope key" → value: machine, build, load
  std::string verdict;                        // its kind and sentence; empty when there is none
  std::string verdict_sentence;

  bool imported() const { return info.backend.starts_with("import"); }
};

// A run before it has its place in a tree. `reader` must outlive it.
struct UnplacedRun {
  RunValues values;
  CallTree calls;
  std::vector<int64_t> ns_by_stack;
};

// Failures: the Reader's; a run in which nothing was recorded.
Result<UnplacedRun> read_unplaced_run(const run::Reader& reader, const std::string& path);
RunValues place(UnplacedRun run, UnionTree& tree);
// Both at once.
Result<RunValues> read_run_values(const run::Reader& reader, const std::string& path,
                                  UnionTree& tree);

}  // namespace assay::analysis
