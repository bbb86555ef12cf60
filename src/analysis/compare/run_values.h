// RunValues: what one run brings to a comparison: totals, and its column of the UnionTree.
//
// Parts that a run does not have (load, locks, counters, heap) stay empty; what measures.h and
// heap_changes.h make of them is left out then.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/functions/union_tree.h"
#include "analysis/heap/heap_summary.h"
#include "analysis/profile/call_tree.h"
#include "analysis/time/thread_time.h"
#include "analysis/verdict/verdict_kind.h"
#include "base/result.h"
#include "run/reader.h"
#include "run/run_kind.h"
#include "run/selection/selection.h"

namespace assay::analysis {

// A function that allocates, all its lines together: lines move between versions.
struct HeapSiteValues {
  std::string module;
  std::string file;  // of its heaviest line
  uint32_t line = 0;
  HeapAmount live, allocated;
};

struct HeapValues {
  bool present = false;
  bool timed = true, live_known = true, freed_known = true;  // as of HeapSummary
  double rate_bytes = 0;                                     // mean bytes between samples
  HeapAmount live, allocated;
  // By function and comparable module; the program's own have none, as it may be renamed.
  std::map<std::pair<std::string, std::string>, HeapSiteValues> sites;
};

struct RunValues {
  std::string path;
  std::string program;  // the file name of the server itself; empty when not known
  model::RunInfo info;
  size_t column = 0;  // in the UnionTree
  double seconds = 0;
  bool load_measured = false;
  double requests = 0;  // answered well in the window
  double errors = 0;
  double cpu_ns = 0;  // the kernel's account of running time
  TimeSplit time;
  uint64_t samples = 0;
  uint64_t waits = 0;
  double lost_share = 0;
  double sampled_ns = 0;     // what the samples add up to
  double sampled_share = 1;  // what the samples add up to, of cpu_ns
  double slowness = 1;       // of the machine in this run, where compare() could tell
  std::optional<double> latency_p50_ns, latency_p90_ns, latency_p99_ns;
  std::map<std::string, double> category_ns;  // CPU time by subsystem
  std::map<std::string, double> lock_ns;      // waited for, by the lock's name
  std::map<std::string, double> counted;      // by counted_parts()'s id
  HeapValues heap;
  run::RunKind run_kind = run::RunKind::recorded;
  std::map<std::string, std::string> facts;  // "scope key" → value: machine, build, load
  std::optional<VerdictKind> verdict;        // absent: none is known
  std::string verdict_sentence;

  // A command that was recorded to its own end: the whole of it is one piece of work.
  bool ran_to_its_end() const { return info.finished && info.end_reason == "target exited"; }
  double failed_share() const { return requests + errors > 0 ? errors / (requests + errors) : 0; }
};

// A run before it has its place in a tree. `reader` must outlive it.
struct UnplacedRun {
  RunValues values;
  CallTree calls;
  std::vector<int64_t> ns_by_stack;
};

// Failures: the Reader's; a run in which nothing was recorded.
Result<UnplacedRun> read_unplaced_run(const run::Reader& reader, const std::string& path,
                                      const run::Selection& selection = {});
RunValues place(UnplacedRun run, UnionTree& tree);
// Both at once.
Result<RunValues> read_run_values(const run::Reader& reader, const std::string& path,
                                  UnionTree& tree);

}  // namespace assay::analysis
