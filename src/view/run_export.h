// export_part(): a selection in another tool's format, by formats/export/export.h, as bytes.
//
// In: "format" (as assay export names them), "metric", a selection (run::Selection's names),
// "inverted=1", "by=thread". Out: bytes and a name to save them under. Reads by `reader`, one of the
// run's. Failures: an unknown format or metric, the exporter's, the disk's (a temporary directory is
// used).
#pragma once

#include <string>

#include "base/query_text.h"
#include "base/result.h"
#include "run/reader.h"

namespace assay::view {

struct Exported {
  std::string bytes;
  std::string file_name;
};

// Every format that is written, for the page's menu: name, title, help, suffix, metrics.
std::string formats_json();

Result<Exported> export_part(const run::Reader& reader, const Parameters& parameters);

}  // namespace assay::view
