// render_text(): a Report as text for a terminal, in Style's width.
//
// Computes nothing new: every figure is in analysis::Report. Names are escaped and elided. The same
// report and style give the same bytes. Pure; never fails.
#pragma once

#include <string>

#include "analysis/report.h"
#include "report/text/style.h"

namespace assay::report {

std::string render_text(const analysis::Report& report, const Style& style);
// What is idle and why, place by place: `assay report RUN --why idle`.
std::string render_why_idle(const analysis::Report& report, const Style& style);
// The suspected leaks of a heap profile alone.
std::string render_leaks(const analysis::Report& report, const Style& style);

}  // namespace assay::report
