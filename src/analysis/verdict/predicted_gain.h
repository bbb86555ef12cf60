// add_prediction(): the gain that the model of the server predicts for one finding, with an interval.
//
// The interval's ends are the share's own 95 % interval, and what is not known of a removed wait:
// whether the kernel's CPU time goes with it (not at all, or as much of it as of the waits), and of
// CPU time: whether it is spent evenly or by the busiest pool alone. A prediction never exceeds the
// bound. Nothing is added where throughput does not hang on the server. Pure.
#pragma once

#include "analysis/verdict/gain.h"

namespace assay::analysis {

void add_prediction(const GainBasis& basis, const Diagnosis& finding, Gain& gain);

}  // namespace assay::analysis
