// write_compared_svg(): a comparison of runs as a differential flame graph.
//
// Union layout: every path stands once, as wide as the dearer side's cost per request (or second),
// so that what vanished stays visible and shares of one another do not hide a change. Orange is
// dearer, blue cheaper, by the ratio; grey is within noise. Failures: Output's.
#pragma once

#include "analysis/compare/compare.h"
#include "formats/export/output.h"

namespace assay::formats {

void write_compared_svg(const analysis::UnionTree& tree, const analysis::Comparison& comparison,
                        Output& output);

}  // namespace assay::formats
