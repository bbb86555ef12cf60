// Measures: one number per run and side becomes a ratio with its interval and a finding.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/compare/compare.h"

namespace assay::analysis {

// Values of zero are set to `least` (half a sample, say), so that their logarithm exists.
Measure make_measure(std::string id, std::string name, std::string unit,
                     std::span<const double> base, std::span<const double> next, double least);

// One function's time by run, beside the machine's slowness in those runs (run_speeds.h): what it
// follows of that within the sides is taken out. `slope`: how much that is, 1 for all of it.
struct FunctionMeasure {
  Measure measure;
  double slope = 0;
};
FunctionMeasure make_function_measure(const Comparison& comparison, std::span<const double> base,
                                      std::span<const double> next, double least);

// How sure findings must be, by family, so that a comparison of equal sides shows anything at all
// in 5 % of cases at most: each family is one under Benjamini and Hochberg at its own level.
constexpr double kFunctionsLevel = 0.02;
constexpr double kHeadlinesLevel = 0.01;
constexpr double kMeasuresLevel = 0.01;
constexpr double kHeapLevel = 0.01;

// Decides by p (adjusted, where it was one of many) and by the interval, which has to lie beyond
// the smallest floor; `certainly_none` is what two one-sided tests say.
Outcome outcome_of(const Measure& measure, double level, bool certainly_none);

// What a run's time is divided by, and shown in.
double divisor(const RunValues& run, Per per);
// The same for the times of functions, which are shares of the samples: of the running time that
// the kernel counted, which is exact, and not of what the samples add up to.
double function_divisor(const RunValues& run, Per per);

}  // namespace assay::analysis
