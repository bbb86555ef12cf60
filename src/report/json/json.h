// render_json(): a Report for programs, by the versioned schema in docs/report.schema.json.
//
// Times are integers in ns, shares 0–1. Keys stand in the schema's order; the same report gives the
// same bytes, without a final newline. Invalid UTF-8 in names becomes U+FFFD. Pure; never fails.
#pragma once

#include <string>

#include "analysis/report.h"

namespace assay::report {

inline constexpr int kSchemaVersion = 1;

std::string render_json(const analysis::Report& report);

}  // namespace assay::report
