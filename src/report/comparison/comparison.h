// A Comparison as text, Markdown and JSON. Computes nothing new; names are cleaned like everywhere
// in this room. Pure.
#pragma once

#include <string>

#include "analysis/compare/compare.h"
#include "report/text/style.h"

namespace assay::report {

std::string render_comparison_text(const analysis::Comparison& comparison, const Style& style);
std::string render_comparison_markdown(const analysis::Comparison& comparison);
std::string render_comparison_json(const analysis::Comparison& comparison);

}  // namespace assay::report
