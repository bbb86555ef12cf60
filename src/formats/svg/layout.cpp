#include "formats/svg/layout.h"

#include <algorithm>

namespace assay::formats {
namespace {

std::vector<double> widths(const FlameTree& tree, bool differential, bool same_unit) {
  const std::vector<FlameNode>& nodes = tree.nodes();
  std::vector<double> width(nodes.size());
  double whole = static_cast<double>(std::max<int64_t>(1, nodes[0].total));
  double base = static_cast<double>(std::max<int64_t>(1, nodes[0].base_total));
  if (same_unit) whole = base = std::max(whole, base);
  for (size_t i = nodes.size(); i-- > 0;) {
    double now = static_cast<double>(nodes[i].self) / whole;
    double before = static_cast<double>(nodes[i].base_self) / base;
    width[i] += differential ? std::max(now, before) : now;
    if (i > 0) width[nodes[i].parent] += width[i];
  }
  return width;
}

}  // namespace

FlameLayout lay_out(const FlameTree& tree, bool differential, double narrowest, size_t most_boxes,
                    bool same_unit) {
  const std::vector<FlameNode>& nodes = tree.nodes();
  std::vector<double> width = widths(tree, differential, same_unit);
  double whole = width[0] > 0 ? width[0] : 1;
  if (nodes.size() > most_boxes) {
    std::vector<double> sorted = width;
    auto last = sorted.begin() + static_cast<ptrdiff_t>(most_boxes);
    std::nth_element(sorted.begin(), last, sorted.end(), std::greater<>());
    narrowest = std::max(narrowest, *last / whole);
  }
  FlameLayout layout;
  std::vector<std::vector<uint32_t>> children(nodes.size());
  for (uint32_t i = 1; i < nodes.size(); ++i) {
    bool drawn = width[i] > 0 && width[i] / whole >= narrowest;
    if (drawn) children[nodes[i].parent].push_back(i);
    layout.left_out += !drawn && width[i] > 0;
  }
  std::vector<FlameBox> open{{0, 0, 0, 1}};
  while (!open.empty()) {
    FlameBox box = open.back();
    open.pop_back();
    layout.boxes.push_back(box);
    layout.depth = std::max(layout.depth, box.depth + 1);
    std::vector<uint32_t>& below = children[box.node];
    std::sort(below.begin(), below.end(), [&](uint32_t a, uint32_t b) {
      if (width[a] != width[b]) return width[a] > width[b];
      return tree.label_of(nodes[a]).name < tree.label_of(nodes[b]).name;
    });
    double start = box.start;
    for (uint32_t child : below) {
      open.push_back({child, box.depth + 1, start, width[child] / whole});
      start += width[child] / whole;
    }
  }
  return layout;
}

}  // namespace assay::formats
