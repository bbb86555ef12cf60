// SecondTotals: what each thread did in each second, so that a timeline needs no decoding.
//
// A wait's time is split over the seconds it touches. Seconds that lie completely inside one wait
// are left out, so an idle thread costs nothing; a second without a row means that the thread was
// off the CPU for the whole second. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/sample.h"

namespace assay::run {

struct SecondTotal {
  int64_t second = 0;  // CLOCK_MONOTONIC seconds, rounded down
  uint32_t thread = 0;
  int64_t samples = 0;
  int64_t weight_ns = 0;
  int64_t waits = 0;  // that began in this second
  int64_t blocked_ns = 0;
  int64_t runqueue_ns = 0;
};

// Rows sorted by thread and time. The result is sorted by second and thread, each pair once.
std::vector<SecondTotal> second_totals(std::span<const model::Sample> samples,
                                       std::span<const model::Wait> waits);

}  // namespace assay::run
