// Folded stacks in: "root;…;leaf value" lines, as stackcollapse scripts, bpftrace and others write.
//
// In: text; values are integers or decimals, of samples or of the unit that the options name. The
// suffixes _[k], _[j] and _[i] mark kernel, JIT and inlined functions. Out: untimed samples of one
// thread; waits, where a line has a WaitLeaf or the options say that all are. Failures: a line
// without a value, with its offset. Empty lines and '#' lines are skipped.
#pragma once

#include "formats/import/reading.h"

namespace assay::formats {

bool looks_folded(std::string_view bytes);
Result<void> read_folded(const Input& input, const ReadOptions& told, RunBuilder& builder);

}  // namespace assay::formats
