// why_not_comparable(): what, besides the change under test, differs between two sets of runs.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/compare.h"

namespace assay::analysis {

// Sentences for people; empty when nothing stands against comparing.
std::vector<std::string> why_not_comparable(const Comparison& comparison);

}  // namespace assay::analysis
