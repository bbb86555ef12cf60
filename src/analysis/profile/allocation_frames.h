// Which frames at the top of an allocation's stack are the allocating machinery itself.
//
// malloc and its kin, operator new, functions inside the libraries of jemalloc and tcmalloc, and
// the containers and strings of the standard library that call them. They are skipped, because a
// user wants to know which line of the program asked for the memory. Pure; never fails.
#pragma once

#include <cstddef>
#include <span>

#include "analysis/profile/call_tree.h"

namespace assay::analysis {

// How many frames, leaf first, to leave out of what is shown: allocation functions always, plumbing
// as long as something of the program follows.
size_t frames_to_cut(std::span<const FrameText> leaf_first);

}  // namespace assay::analysis
