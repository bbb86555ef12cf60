// A Comparison as one HTML file that needs nothing else: sentence, verdicts, measures, functions
// and the differential flame graph.
//
// In: the comparison and its flame graph as SVG, which keeps its own scripts in a frame of its own.
// All text of foreign origin is escaped; the page's policy lets it load nothing. Pure.
#pragma once

#include <string>

#include "analysis/compare/compare.h"

namespace assay::report {

std::string render_comparison_html(const analysis::Comparison& comparison, const std::string& svg);

}  // namespace assay::report
