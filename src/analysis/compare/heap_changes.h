// heap_changes(): which functions allocate more, less or hold on to more than before.
//
// Sites are matched by function and module, all lines of a function together. Three numbers per run
// and site: bytes and objects allocated (per request or second, as the comparison's times) and
// bytes live at the end of the window. Sites of half a percent of what was allocated or lived are
// tested as one family, like functions (compare.h). With one run on a side a difference is listed
// when it is beyond the sampler's own error. In: sides whose runs all have a heap profile; else the
// answer is empty. Pure.
#pragma once

#include "analysis/compare/compare.h"

namespace assay::analysis {

struct HeapChanges {
  std::vector<HeapChange> changes;  // largest first
  size_t tested = 0;                // sites
};

HeapChanges heap_changes(const Comparison& comparison, size_t most);

}  // namespace assay::analysis
