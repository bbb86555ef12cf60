// render_markdown(): a Report that pastes into an issue, its details folded.
//
// Computes nothing new. Names from the target cannot end a table cell, open a tag or mention
// anybody. The same report gives the same bytes. Pure; never fails.
#pragma once

#include <string>

#include "analysis/report.h"

namespace assay::report {

std::string render_markdown(const analysis::Report& report);

}  // namespace assay::report
