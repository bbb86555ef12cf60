// Which frames at the top of an allocation's stack are the allocating machinery itself.
//
// malloc and its kin, operator new, the insides of jemalloc's and tcmalloc's libraries, and the containers and strings of the standard library that
// call them: what a person asks is which line of the program wanted the memory. Pure; never fails.
#pragma once

#include <cstddef>
#include <span>

#include "analysis/profile/call_tree.h"

namespace assay::analysis {

// How many frames, leaf first, to leave out of what is shown: allocation functions always, plumbing
// as long as something of the program follows.
size_t frames_to_cut(std::span<const FrameText> leaf_first);

}  // namespace assay::analysis
