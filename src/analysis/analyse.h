// analyse(): a run becomes a Report, in one pass over its samples and two over its waits (three
// where semaphores have to be told from locks).
//
// In: a run::Reader. Out: Report; the same run and options give the same Report, byte for byte.
// Threads: none of its own; may run beside another analyse() on another Reader.
// Failures: the Reader's, unchanged; a selection that matches no thread, or that is not of threads
// alone; a suspect that is no regular expression. Rules that are wrong are left out and named
// in the JSON report; commands print them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/profile/call_tree.h"
#include "analysis/report.h"
#include "analysis/rules/rule_set.h"
#include "base/result.h"
#include "run/reader.h"
#include "run/selection/selection.h"

namespace assay::analysis {

struct Options {
  std::string run_path;      // for the report's own words
  run::Selection selection;  // of threads; a report is about the whole window and all stacks
  size_t max_functions = 200;
  size_t max_paths = 50;
  size_t max_waits = 50;
  size_t max_locks = 30;
  size_t max_heap_sites = 200;
  // Null: the built-in rules.
  const RuleSet* rules = nullptr;
  std::vector<std::string> suspects;  // regular expressions to be confirmed or refuted
  // Lines `first` to `last` of a source file, for findings; absent: none are shown.
  std::function<std::vector<std::string>(const std::string& file, uint32_t first, uint32_t last)>
      source;
};

Result<Report> analyse(const run::Reader& reader, const Options& options);

// The same, with what comparisons are made from: every call path and its CPU time.
struct AnalysedRun {
  Report report;
  CallTree calls;  // of the reader's contents
  std::vector<int64_t> cpu_ns_by_stack;
};
Result<AnalysedRun> analyse_run(const run::Reader& reader, const Options& options);

}  // namespace assay::analysis
