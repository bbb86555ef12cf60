// speedscope files in: sampled and evented profiles, each a thread.
//
// Weights in a unit of time become samples; of bytes or nothing, samples whose unit the run names.
// What Assay wrote of time off the CPU becomes waits: whole profiles by their names, stacks of wall
// time by their WaitLeaf; so does all of another tool's file when the options say that. Evented
// profiles give every stack the time between two events. Failures: JSON that does not parse (with
// its offset) or lacks what the schema demands; indices that refer to nothing.
#pragma once

#include "formats/import/reading.h"

namespace assay::formats {

inline constexpr size_t kMostSpeedscopeBytes =
    size_t{1} << 28;  // the tree of a JSON text is many times its size

bool looks_like_speedscope(std::string_view bytes);
Result<void> read_speedscope(const Input& input, const ReadOptions& options, RunBuilder& builder);

}  // namespace assay::formats
