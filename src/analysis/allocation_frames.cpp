#include "analysis/allocation_frames.h"

#include "model/allocation_names.h"

namespace assay::analysis {

using model::is_allocation_function;
using model::is_library_plumbing;

size_t frames_to_cut(std::span<const FrameText> leaf_first) {
  size_t own = 0;
  while (own < leaf_first.size() && is_allocation_function(leaf_first[own].function)) ++own;
  size_t plumbing = own;
  while (plumbing < leaf_first.size() && (is_library_plumbing(leaf_first[plumbing].function) ||
                                          is_allocation_function(leaf_first[plumbing].function)))
    ++plumbing;
  bool program_follows =
      plumbing < leaf_first.size() && leaf_first[plumbing].kind == CodeKind::user;
  if (program_follows) return plumbing;
  return own < leaf_first.size() ? own : 0;
}

}  // namespace assay::analysis
