// Folded stacks: "root;…;leaf value", one line per distinct stack, heaviest first.
//
// In: a finished FlameTree. Out: text; values are integers (ns or counts). A ';' in a name becomes
// ':', line ends and control characters are replaced, so every line splits at ';' and at its last
// space. The values add up to the tree's total. Failures: Output's.
#pragma once

#include "formats/export/output.h"
#include "formats/tree/flame_tree.h"

namespace assay::formats {

void write_folded(const FlameTree& tree, Output& output);

}  // namespace assay::formats
