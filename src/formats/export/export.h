// export_run: a run, or a part of it, in the form that another tool opens.
//
// In: a Reader and what to export; out: one file, whole or not at all, or one file per process.
// Threads: none of its own. Failures: the Reader's, the selection's, the file system's; a metric of
// which the run or the selection holds nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/export/metric.h"
#include "formats/export/selected_run.h"
#include "formats/format.h"
#include "formats/tree/flame_tree.h"

namespace assay::formats {

struct ExportOptions {
  const FormatSpec* format = find_format("folded");
  std::optional<Metric> metric;  // not set: cpu (of a heap profile inuse_space), or all
  Selection selection;
  Grouping grouping = Grouping::process;
  bool inverted = false;
  bool icicle = false;
  const run::Reader* base = nullptr;  // svg: compare with this run
  std::string title;                  // svg; empty: the metric's
};

Result<void> export_run(const run::Reader& reader, const ExportOptions& options,
                        const std::string& path);

// The same, in memory.
Result<std::string> export_to_text(const run::Reader& reader, const ExportOptions& options);

// One file per process with any value of the metric, named after its role, into an existing
// directory. Gives the paths written back.
Result<std::vector<std::string>> export_by_process(const run::Reader& reader,
                                                   const ExportOptions& options,
                                                   const std::string& directory,
                                                   const std::string& suffix);

}  // namespace assay::formats
