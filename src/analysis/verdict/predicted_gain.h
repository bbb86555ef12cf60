// add_prediction(): the gain that the model of the server predicts for one finding, with an interval.
//
// The interval's ends are the share's own 95 % interval, and what is not known: whether the CPU time
// around it goes along (rules/goes_along.h), how much the kernel's time for each unit falls when more
// is done at once, and whether CPU time is spent evenly or by the busiest pool. A prediction never
// exceeds the bound. Nothing is added where the server does not decide the throughput. Pure.
#pragma once

#include "analysis/demand/prediction.h"
#include "analysis/verdict/gain.h"

namespace assay::analysis {

void add_prediction(const GainBasis& basis, const ServerModel& model, const Diagnosis& finding,
                    Gain& gain);

}  // namespace assay::analysis
