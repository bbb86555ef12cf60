// WaitLeaf: the synthetic frame below a wait's stack in exports of wall time, and back.
//
// Where on-CPU time and waits stand in one tree, the leaf says which is which: "[blocked: lock]",
// "[run queue]". Every format writes the same names, so that a reader of them tells waits from CPU
// time again. Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "analysis/time/wait_kind.h"

namespace assay::formats {

// A number for each leaf: the kinds of blocking by their value, then the run queue.
using WaitLeaf = int;
inline constexpr int kWaitLeafCount = analysis::kBlockKindCount + 1;
inline constexpr WaitLeaf kRunQueueLeaf = analysis::kBlockKindCount;
inline WaitLeaf blocked_leaf(analysis::BlockKind kind) {
  return static_cast<WaitLeaf>(kind);
}

std::string_view wait_leaf_name(WaitLeaf leaf);
// None for a name that Assay does not write.
std::optional<WaitLeaf> parse_wait_leaf(std::string_view name);

}  // namespace assay::formats
