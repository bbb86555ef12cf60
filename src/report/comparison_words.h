// Phrases of a comparison that text, Markdown and HTML share. Pure.
#pragma once

#include <string>
#include <string_view>

#include "analysis/compare/compare.h"

namespace assay::report {

std::string change_text(double ratio);                        // "+12.3 %", "×14"
std::string interval_text(const analysis::Measure& measure);  // "+2.1 % … +4.0 %"; may be empty
std::string_view outcome_text(analysis::Outcome outcome);     // "higher", "not shown"
std::string_view kind_text(analysis::ChangeKind kind);        // "changed", "new"
std::string number(double value);
std::string runs_text(const analysis::Side& side);
std::string what_text(const analysis::Change& change);
std::string changes_heading(const analysis::Comparison& comparison);
std::string verdict_text(const analysis::SideVerdict& verdict);  // empty when there is none

}  // namespace assay::report
