// compare(): two sets of runs become what changed, with its uncertainty.
//
// The unit is the run. Each measure and function is one number per run (CPU time per request, say);
// sides are compared by Welch's test on logarithms, with the wider of Student's and the bootstrap's
// 95 % interval of the ratio. Functions are taken at the usual speed of the machine (run_speeds.h).
// All functions that matter (half a percent of the time) are one family under Benjamini and
// Hochberg; so are the measures; their levels (measure.h) add up to 5 %. A change is a finding when
// that holds and its interval lies beyond ±2 %. Then the call tree is walked down to the functions
// that explain the change, so that a caller's is not told again for its callees. With one run a
// side everything is descriptive. In: RunValues and the UnionTree they are columns of. Pure.
// Failures: no run on a side, the same run twice on a side, runs that lack what they are divided
// by.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/functions/union_tree.h"
#include "analysis/compare/run_values.h"
#include "base/result.h"

namespace assay::analysis {

constexpr double kSmallestFloor = 0.02;  // smaller changes are no findings, however sure

enum class Per : uint8_t { request, second, share, run };
std::string_view per_name(Per per);  // "request"

enum class Outcome : uint8_t {
  higher,
  lower,
  no_change,    // certainly within no_change_within (two one-sided tests)
  undecided,    // neither shown
  descriptive,  // one run a side: no statement can be made
};
std::string_view outcome_name(Outcome outcome);
// Whether it is a finding: higher or lower.
inline bool is_finding(Outcome outcome) {
  return outcome == Outcome::higher || outcome == Outcome::lower;
}

enum class MeasureGroup : uint8_t {
  load_group,  // the headlines: throughput, latency, CPU
  time_group,
  lock_group,
  category_group,
  counter_group,
  memory_group,
};
std::string_view measure_group_name(MeasureGroup group);  // "thread time"

// One number of both sides. `ratio` is new over base.
struct Measure {
  MeasureGroup group = MeasureGroup::load_group;
  std::string id;    // "cpu_per_request"
  std::string name;  // "CPU per request"
  std::string unit;  // "µs", "1/s", "ms", "%"
  double base = 0;   // geometric means over the runs
  double next = 0;
  double ratio = 1;
  double low = 0;  // 95 % interval of the ratio
  double high = 0;
  double p = 1;  // adjusted for having asked its whole family
  Outcome outcome = Outcome::undecided;
};

enum class ChangeKind : uint8_t { changed, appeared, vanished, moved };

struct Change {
  ChangeKind kind = ChangeKind::changed;
  std::string function;
  std::string module;
  std::vector<std::string> callers;  // innermost first, of the heaviest path
  bool with_callees = false;         // its callees changed alike: it is called more, or does more
  Measure time;
  double share_of_base = 0;  // of all CPU time, by side
  double share_of_next = 0;
  std::string partner;  // moved: the function that the time went to or came from
};

// A function that allocates, with what it allocates per unit of the comparison and holds at the
// end.
struct HeapChange {
  ChangeKind kind = ChangeKind::changed;
  std::string function;
  std::string module;
  std::string file;  // of its heaviest line, as the newest run has it
  uint32_t line = 0;
  Measure allocated;  // bytes per request or second
  Measure objects;    // allocated, per request or second
  Measure live;       // bytes at the end of the window
};

struct Side {
  std::vector<RunValues> runs;
};

// What functions were measured by, so that a slow run does not look like dear functions.
struct Yardstick {
  bool used = false;
  double share = 0;  // of the CPU time
  Measure cost;      // the median path's: how the machine, or everything alike, changed
};

// What held a side back, as most of its runs say.
struct SideVerdict {
  std::optional<VerdictKind> kind;  // absent: no run has one
  std::string sentence;
  size_t agreeing = 0, runs = 0;
};

struct Comparison {
  Per per = Per::second;
  Side base;
  Side next;
  SideVerdict base_verdict, next_verdict;
  std::string verdict_change;                // both in one sentence; empty where there are none
  std::vector<Measure> measures;             // by group
  std::vector<Change> changes;               // explained, by size; with one run a side the largest
  bool has_heap = false;                     // every run has a heap profile
  bool heap_timed = true;                    // else allocations are compared by the profile
  std::vector<HeapChange> heap_changes;      // by size
  std::vector<std::string> warnings;         // why the runs may not be comparable
  double no_change_within = kSmallestFloor;  // the margin of "no change": what runs differ by
  Yardstick yardstick;
  bool descriptive = false;
  size_t functions_tested = 0;
  size_t heap_sites_tested = 0;
  std::string sentence;
};

// The unit of times: per request in µs, per second in ms, shares in percent.
struct TimeUnit {
  const char* name;
  double scale;  // from ns per divisor
};
TimeUnit time_unit(Per per);

struct CompareOptions {
  // Unset: shares where runs were imported, per request when all runs measured load, per run when
  // all are of commands that came to their end, else per second.
  std::optional<Per> per;
  size_t max_changes = 20;  // functions; sites of the heap
};

Result<Comparison> compare(const UnionTree& tree, std::vector<RunValues> base,
                           std::vector<RunValues> next, const CompareOptions& options);

}  // namespace assay::analysis
