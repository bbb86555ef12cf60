// Counts as a table for the terminal and as JSON. Pure.
#pragma once

#include <string>

#include "model/counters.h"
#include "report/style.h"

namespace assay::report {

struct CountersShown {
  double seconds = 0;
  const model::Counts& counts;
};

// Rows of counts with their rates and, where groups took turns, the share of the time; then ratios.
std::string render_counters_text(const CountersShown& shown, const Style& style);
// Which events could not be counted, by reason.
std::string render_uncounted(const model::Counts& counts, const Style& style);
// {"counters": {...}, "ratios": {...}}
std::string render_counters_json(const CountersShown& shown);
std::string_view counter_name(model::CounterId id);

}  // namespace assay::report
