// make_tree(): the flame tree of an export, of one run or of two laid over one another.
//
// In: a WriteJob, for formats that are drawn from a tree. Out: a finished FlameTree. Failures: the
// Reader's; a base that holds nothing of the metric.
#pragma once

#include "formats/format.h"
#include "formats/tree/flame_tree.h"

namespace assay::formats {

Result<FlameTree> make_tree(const WriteJob& job);

}  // namespace assay::formats
