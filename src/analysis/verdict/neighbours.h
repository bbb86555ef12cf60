// Neighbours: what programs beside the target leave it of the host, for rules and their sentences.
//
// In: what was measured; out: numbers and words. Names of programs are as they named themselves:
// who shows a sentence escapes it. Pure; never fails.
#pragma once

#include <string>

#include "analysis/verdict/verdict.h"

namespace assay::analysis {

// CPUs of all programs but the target and its load generator.
double cpus_of_others(const Vitals& vitals);
// Strangers, or whoever is not known to be the load generator, hold so much of the host that the
// target lacks it.
bool others_hold_much(const Basis& basis);
bool strangers_hold_much(const Vitals& vitals);
// Of the CPUs that the target may use: neither it nor others use it.
double free_share(const Vitals& vitals);
// "stress-ng (stranger) 1.00, wrk (load generator) 0.52"; "" when no user is known by name.
std::string largest_others(const Measured& run);
// "other programs keep 1.5 CPUs busy: stress-ng (stranger) 1.00, …".
std::string others_text(const Basis& basis, double cpus);

}  // namespace assay::analysis
