// Flame graphs as one SVG file that needs nothing else: zoom, search, details, keyboard, print.
//
// In: a finished FlameTree; with base values in it the graph is differential: both trees laid over
// one another, so that frames which vanished stay visible. Out: SVG 1200 units wide; all text of
// foreign origin is escaped and nothing outside the file is referred to. Without scripts it is
// still a readable picture. Failures: Output's.
#pragma once

#include <functional>
#include <string>

#include "formats/export/output.h"
#include "formats/tree/flame_tree.h"

namespace assay::formats {

struct SvgOptions {
  std::string title;
  std::string subtitle;
  bool icicle = false;        // root at the top
  bool differential = false;  // the tree has base values
  // Both sides are in the same unit (not shares of their own whole), and nodes say whether they
  // differ beyond noise.
  bool tested = false;
  std::function<std::string(int64_t)> amount;  // how values are shown; absent: by the metric
};

void write_svg(const FlameTree& tree, const SvgOptions& options, Output& output);

}  // namespace assay::formats
