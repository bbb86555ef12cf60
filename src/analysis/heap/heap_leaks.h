// judge_leaks(): whether a heap profile shows leaks, shows none, or cannot tell.
//
// In: a Report of a run's heap and how the profile came to its end. Out: an answer with its reason,
// and what to do where it cannot be told. "None" is only said where a leak of a megabyte a second,
// and of four in all, would have been seen: sampling leaves an interval, and what fits into it may
// be there. Pure; never fails.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/report.h"

namespace assay::analysis {

enum class LeakAnswer { none, suspected, unknown };

struct LeakCircumstances {
  uint64_t asked_rate_bytes = 0;  // mean bytes between samples, before any were too many
  bool target_ended = false;      // an attached one, in the middle of the profile
};

struct LeakVerdict {
  LeakAnswer answer = LeakAnswer::none;
  std::string reason;  // of an unknown answer
  std::string remedy;
};

LeakVerdict judge_leaks(const Report& report, const LeakCircumstances& circumstances);

// The bytes a second that may have leaked without one call site having been found to leak, with
// 95 % confidence.
double hidden_leak_bytes_per_s(const HeapSummary& heap, uint64_t asked_rate_bytes);

}  // namespace assay::analysis
