// The page as text: as it is served, and as one file with a run's data in it.
//
// The page is ui/dist/page.html, embedded in the program. render_html() puts the run's tables in it
// as gzip in base64, inside an element that no browser executes; the page then asks no server and
// its policy lets it ask none. Time resolution is lowered until the data is small (kMostCells).
// Threads: pure but for the reader, one of the run's. Failures: the reader's.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "view/run_index.h"

namespace assay::view {

std::string_view page_html();

Result<std::string> render_html(RunIndex& run, const run::Reader& reader,
                                const std::string& report_json);

}  // namespace assay::view
