// What an exported picture says above itself: its title, and of what it is.
//
// In: a run's contents, the metric, the selection; out: text, with everything foreign cleaned. The
// unit is the metric's, or what an imported profile counts. Pure.
#pragma once

#include <string>

#include "formats/export/metric.h"
#include "formats/export/selected_run.h"
#include "formats/tree/flame_tree.h"

namespace assay::formats {

std::string amount_of(const run::Contents& contents, Metric metric, int64_t value);
std::string title_of(const run::Contents& contents, Metric metric);
std::string subtitle_of(const SelectedRun& run, const FlameTree& tree, Metric metric,
                        const Selection& selection);

}  // namespace assay::formats
