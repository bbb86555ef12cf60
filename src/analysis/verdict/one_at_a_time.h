// "One at a time": many threads have work, and only one of them runs at any moment.
//
// A runtime's lock, a mutex that goroutines or tasks wait for, a pipeline without overlap: none of
// them needs a thread that blocks, so that no kind of wait tells. What tells is how many threads
// run or could run at once (parallelism.h). A server with one busy thread is something else
// (serial-stage), and so is one with little to do: there the CPUs are free most of the time.
// In: what was measured. Out: a claim, or nothing. Pure; never fails.
#pragma once

#include <optional>

#include "analysis/verdict/verdict.h"

namespace assay::analysis {

std::optional<Claim> one_at_a_time(const Basis& basis);

}  // namespace assay::analysis
