// gains_of(): how much throughput removing a finding could bring at most, by operational laws.
//
// Throughput cannot rise beyond what the resources that are left allow: the capacity of each divided
// by the demand that stays. A wait that goes takes its queue along, so that its own share of the
// time bounds nothing; the CPUs do, and the CPU time in the kernel that belongs to the wait may go
// as well. Where what is left is too small to be measured, the gain is said to be not bounded.
// These are upper bounds, never promises. Beside the bound stands a prediction with an interval, by
// a model of the server (demand/prediction.h), where one fits. In: demands, vitals, the verdict's
// kind and the findings. Out: one Gain for each finding, in their order. Pure.
#pragma once

#include <vector>

#include "analysis/report.h"

namespace assay::analysis {

// What gains rest on. All must outlive it.
struct GainBasis {
  const Demands& demands;
  const Vitals& vitals;
  VerdictKind verdict;
};

std::vector<Gain> gains_of(const GainBasis& basis, const std::vector<Diagnosis>& findings);

// Findings with their gains, in the order in which they should be read: what invalidates the run,
// then by what they are likely to be worth.
std::vector<Finding> ranked(std::vector<Diagnosis> findings, std::vector<Gain> gains);

}  // namespace assay::analysis
