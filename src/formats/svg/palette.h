// Colours of frames: by kind, slightly different by name, light enough for black text and print.
#pragma once

#include <string>
#include <string_view>

#include "formats/tree/flame_tree.h"

namespace assay::formats {

std::string frame_colour(FrameKind kind, std::string_view name, Metric metric);  // "#f2b05e"
std::string kind_colour(FrameKind kind, Metric metric);  // the middle one, for the legend
// From −1 (gone) over 0 (unchanged) to 1 (new).
std::string change_colour(double change);

}  // namespace assay::formats
