// The one sentence that a comparison begins with: what whole runs cost, and what changed in them.
// Pure; needs the measures and changes of the comparison.
#pragma once

#include <string>

#include "analysis/compare/compare.h"

namespace assay::analysis {

std::string sentence_of(const Comparison& comparison);

}  // namespace assay::analysis
