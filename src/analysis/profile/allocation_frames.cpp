#include "analysis/profile/allocation_frames.h"

#include "model/heap/allocation_names.h"

namespace assay::analysis {

using model::is_library_plumbing;

namespace {

// An allocator that profiles itself has frames of its own on top, often without names.
bool is_allocation_frame(const FrameText& frame) {
  return model::is_allocation_function(frame.function) ||
         frame.module.starts_with("libjemalloc.so") || frame.module.starts_with("libtcmalloc");
}

}  // namespace

size_t frames_to_cut(std::span<const FrameText> leaf_first) {
  size_t own = 0;
  while (own < leaf_first.size() && is_allocation_frame(leaf_first[own])) ++own;
  size_t plumbing = own;
  while (plumbing < leaf_first.size() && (is_library_plumbing(leaf_first[plumbing].function) ||
                                          is_allocation_frame(leaf_first[plumbing])))
    ++plumbing;
  bool program_follows =
      plumbing < leaf_first.size() && leaf_first[plumbing].kind == CodeKind::user;
  if (program_follows) return plumbing;
  return own < leaf_first.size() ? own : 0;
}

}  // namespace assay::analysis
