// export_part(): a selection in another tool's format, by formats/export/export.h, as bytes.
//
// In: "format" (as assay export names them), "metric", "from", "to" (ns since the window's
// beginning), "thread", "focus", "ignore" (expressions), "threads" (by number, as in every other
// question), "idle=0" (no waiting for work), "inverted=1", "by=thread". Out: bytes and a name to
// save them under.
// Reads by `reader`, one of the run's. Failures: an unknown format or metric, the exporter's, the
// disk's (a temporary directory is used).
#pragma once

#include <string>

#include "base/result.h"
#include "view/run_index.h"
#include "view/selection.h"

namespace assay::view {

struct Exported {
  std::string bytes;
  std::string file_name;
};

// Every format that is written, for the page's menu: name, title, help, suffix, metrics.
std::string formats_json();

Result<Exported> export_part(const RunIndex& run, const run::Reader& reader,
                             const Parameters& parameters);

}  // namespace assay::view
