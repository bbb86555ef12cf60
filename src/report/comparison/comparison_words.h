// Phrases of a comparison that text, Markdown and HTML share. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/compare.h"

namespace assay::report {

std::string change_text(double ratio);  // "+12.3 %", "×14"
// The same; "new" and "gone" where a side has none of it.
std::string change_text(const analysis::Measure& measure);
std::string interval_text(const analysis::Measure& measure);  // "+2.1 % … +4.0 %"; may be empty
std::string_view outcome_text(analysis::Outcome outcome);     // "higher", "not shown"
std::string_view kind_text(analysis::ChangeKind kind);        // "changed", "new"
std::string number(double value);
std::string runs_text(const analysis::Side& side);
std::string what_text(const analysis::Change& change);
std::string changes_heading(const analysis::Comparison& comparison);
std::string heap_heading(const analysis::Comparison& comparison);
// The parts of a site's change that are worth a line each: what changed; with one run a side all.
struct HeapPart {
  std::string what;  // "allocated", "objects", "live"
  std::string base, next;
  const analysis::Measure* measure;
};
std::vector<HeapPart> heap_parts(const analysis::HeapChange& change,
                                 const analysis::Comparison& comparison);
std::string site_text(const analysis::HeapChange& change);  // "server.cpp:12", the module, or both
std::string verdict_text(const analysis::SideVerdict& verdict);  // empty when there is none

}  // namespace assay::report
