// RunValues: what one run brings to a comparison: totals, and its column of the UnionTree.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

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
  std::optional<double> latency_p50_ns, latency_p99_ns;
  std::map<std::string, std::string> facts;  // "scope key" → value: machine, build, load
  std::string verdict;                       // its kind and sentence; empty when there is none
  std::string verdict_sentence;
};

// Reads a run and adds it to the tree. Failures: the Reader's.
Result<RunValues> read_run_values(const run::Reader& reader, const std::string& path,
                                  UnionTree& tree);

}  // namespace assay::analysis
