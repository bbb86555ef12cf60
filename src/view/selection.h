// Selection: which part of a run a query is about: a time range, threads, functions.
//
// In: names and values as they came from a request. Out: bounds that hold for the run (a range is
// cut to the window, unknown threads and functions are refused). Pure.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "view/run_index.h"

namespace assay::view {

using Parameters = std::map<std::string, std::string>;

struct Selection {
  TimeNs begin_ns = 0;  // on the run's clock
  TimeNs end_ns = 0;
  std::vector<bool> threads;  // by thread; empty: all
  std::vector<bool> nodes;    // by node: those with a chosen function on their path; empty: all
  // How its rows are read: by this reader (null: the index's own), until nobody waits any more.
  const run::Reader* reader = nullptr;
  const std::atomic<bool>* stop = nullptr;

  bool has_thread(model::ThreadId thread) const {
    return threads.empty() || (thread.value < threads.size() && threads[thread.value]);
  }
  bool has_node(NodeIndex node) const { return nodes.empty() || nodes[node]; }
  run::TimeRange range() const { return {begin_ns, end_ns, stop}; }
  const run::Reader& rows(const RunIndex& run) const { return reader ? *reader : run.reader(); }
};

// "from", "to": ns since the window's beginning; "threads", "functions": numbers by comma.
Result<Selection> select(const RunIndex& run, const Parameters& parameters);

// A number in [least, most]; `otherwise` when the parameter is absent.
Result<int64_t> number(const Parameters& parameters, const std::string& name, int64_t otherwise,
                       int64_t least, int64_t most);

// "a=1&b=x%20y" → parameters. A malformed escape is an error.
Result<Parameters> parse_query(std::string_view query);

}  // namespace assay::view
