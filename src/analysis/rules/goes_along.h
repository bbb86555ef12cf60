// What goes with a finding when its cause is removed, besides its own share: CPU time.
//
// A wait takes along the CPU time of the calls that wait: the way into the kernel, the file system,
// the switch. CPU time that a function causes takes along that function's own instructions, where
// they are fewer than what it causes. Pure; never fails.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/profile/call_tree.h"
#include "analysis/profile/profile.h"

namespace assay::analysis {

// The call of the program's that a wait happens in: its path up to the last frame outside the
// kernel; 0: it has none.
PathIndex call_of(const CallTree& tree, PathIndex wait);

// CPU time inside any of these calls.
int64_t cpu_inside(const CallTree& tree, const std::vector<PathWeight>& cpu,
                   const std::unordered_set<PathIndex>& calls);

// CPU time of the functions' own instructions, each with what it causes; larger ones are left out.
int64_t own_cpu_of(const CallTree& tree, const std::vector<PathWeight>& cpu,
                   const std::unordered_map<FunctionIndex, int64_t>& caused_ns);

}  // namespace assay::analysis
