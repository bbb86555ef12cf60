// Selection: which part of a run a query is about, as the run's own numbers.
//
// In: a run::Selection, from a request's parameters or from the command line. Out: bounds that hold
// for the run (a range is cut to the window, unknown threads and functions are refused). Pure.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/query_text.h"
#include "base/result.h"
#include "run/selection/selection.h"
#include "view/run_index.h"

namespace assay::view {

struct Selection {
  TimeNs begin_ns = 0;  // on the run's clock
  TimeNs end_ns = 0;
  std::vector<bool> threads;  // by thread; empty: all
  std::vector<bool> nodes;    // by node: those with a chosen function on their path; empty: all
  // How its rows are read: by this reader (null: the index's own), until `stop` is set.
  const run::Reader* reader = nullptr;
  const std::atomic<bool>* stop = nullptr;

  bool has_thread(model::ThreadId thread) const {
    return threads.empty() || (thread.value < threads.size() && threads[thread.value]);
  }
  bool has_node(NodeIndex node) const { return nodes.empty() || nodes[node]; }
  run::TimeRange range() const { return {begin_ns, end_ns, stop}; }
  const run::Reader& rows(const RunIndex& run) const { return reader ? *reader : run.reader(); }
};

// The names of run::Selection's text form; others are left alone.
Result<Selection> select(const RunIndex& run, const Parameters& parameters);

// The threads and time of a selection as the page's address has them: "#from=…&threads=0.3"; empty
// for the whole run.
Result<std::string> page_fragment(const run::Contents& run, const run::Selection& asked);

// A number in [least, most]; `otherwise` when the parameter is absent.
Result<int64_t> number(const Parameters& parameters, const std::string& name, int64_t otherwise,
                       int64_t least, int64_t most);

}  // namespace assay::view
