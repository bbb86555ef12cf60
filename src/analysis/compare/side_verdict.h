// side_verdict(): what held a side's runs back, as most of them say; and what became of it.
#pragma once

#include <string>

#include "analysis/compare/compare.h"

namespace assay::analysis {

SideVerdict side_verdict(const Side& side);

// "The bottleneck was a lock; now it is the CPU." Empty where a side has no verdict.
std::string verdict_change(const SideVerdict& base, const SideVerdict& next);

}  // namespace assay::analysis
