// Where each frame of a flame graph stands: start, width and depth, wide frames only.
//
// Siblings stand widest first. A frame is as wide as its value; in a differential graph, as the
// larger of what it and its callees have now and had before, each as a share of its whole, so that
// both fit. In: a finished FlameTree. Out: boxes in drawing order, parents first. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/tree/flame_tree.h"

namespace assay::formats {

struct FlameBox {
  uint32_t node = 0;
  uint32_t depth = 0;
  double start = 0;  // 0–1 of the whole
  double width = 0;
};

struct FlameLayout {
  std::vector<FlameBox> boxes;
  uint32_t depth = 0;   // rows
  size_t left_out = 0;  // frames too narrow to draw
};

// `same_unit`: the sides of a differential graph are drawn to one scale instead.
FlameLayout lay_out(const FlameTree& tree, bool differential, double narrowest, size_t most_boxes,
                    bool same_unit = false);

}  // namespace assay::formats
