// The questions of the page, each answered in one or two passes over the run file.
//
// In: a RunIndex and a Selection, or a reader of the run's. Out: Columns (columns.h) or JSON, as
// docs/view.md describes them for scripts. Times are ns since the window's beginning. Threads: any,
// each with a reader of its own (RunIndex::borrow()). Failures: the reader's.
#pragma once

#include <string>

#include "base/result.h"
#include "view/selection.h"

namespace assay::view {

inline constexpr uint32_t kMostBins = 60'000;

// What the run is: window, processes, threads, states; JSON.
std::string meta_json(const RunIndex& run);
// Functions, modules, files and the tree of call paths in preorder.
std::string tree_columns(const RunIndex& run);

struct CellShape {
  uint32_t bins = 1;
  bool by_thread = false;
  size_t most_rows = SIZE_MAX;  // more: the answer is empty
};
// Time and counts by (bin, thread, state, node): what every flame graph and table is made of.
// Running is counted by samples, all else by waits.
Result<std::string> cell_columns(RunIndex& run, const Selection& selection, const CellShape& shape);

// Time by (thread, bin, state): lanes with by_thread, the heat map without. Running is what lies
// between waits, or what samples say where there are no waits or functions are chosen. Of chosen
// functions in a whole large run the answer has the bins of its slices (RunIndex::sums()).
Result<std::string> timeline_columns(RunIndex& run, const Selection& selection,
                                     const CellShape& shape);

// What one thread did, in order: intervals of one state and node each. Beyond `most_rows` the
// heaviest of each of most_rows / 4 bins stands for all.
Result<std::string> order_columns(RunIndex& run, const Selection& selection, model::ThreadId thread,
                                  size_t most_rows);

// Blocked time by state and path, with quantiles of the single waits.
Result<std::string> wait_columns(RunIndex& run, const Selection& selection, size_t most_rows);
// Locks by (process, address): waits, quantiles, waiting paths, threads that ended the waits.
Result<std::string> lock_columns(RunIndex& run, const Selection& selection, size_t most_rows);

// Bytes and objects that live at the end and that were allocated, by node; of the whole window.
Result<std::string> heap_columns(RunIndex& run, const Selection& selection);

// Self and total time by source line.
Result<std::string> line_columns(RunIndex& run, const Selection& selection);
// Lines of a file that the run names: its own text, else that of the disk where the file looks like
// source; JSON {file, from, origin, lines[]}.
Result<std::string> source_json(const RunIndex& run, const run::Reader& reader,
                                const std::string& file, uint32_t from, uint32_t to);
// The same for the hottest files: a JSON list of them, for pages without a server.
Result<std::string> hot_source_json(RunIndex& run, const Selection& selection);

// Counters, gauges and load, at most `most_points` a series; JSON names and columns of points.
Result<std::string> series_columns(const RunIndex& run, const run::Reader& reader,
                                   size_t most_points);

}  // namespace assay::view
