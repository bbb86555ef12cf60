// run_speeds(): how slow the machine was in each run, by what did not change between the sides.
//
// The same code costs more when the machine is slow: neighbours, heat, another clock. That is
// common to many functions of a run, so functions are compared beside it (measure.h). The yardstick
// are call paths of half a percent of the time or more, each with its own time; those that differ
// between the sides beside the others are taken out of it, and the rest is asked again. In: a
// comparison's sides and unit, and the tree. Out: nothing with fewer than three runs on a side, or
// where too little did not change. Pure.
#pragma once

#include <vector>

#include "analysis/compare/compare.h"

namespace assay::analysis {

struct RunSpeeds {
  Yardstick yardstick;
  std::vector<double> slowness;  // by run, base first; 1 is the usual. Empty where not used
};

RunSpeeds run_speeds(const UnionTree& tree, const Comparison& comparison);

}  // namespace assay::analysis
