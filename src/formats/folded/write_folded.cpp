#include "formats/folded/write_folded.h"

#include <algorithm>

#include "formats/export/text.h"

namespace assay::formats {

void write_folded(const FlameTree& tree, Output& output) {
  const std::vector<FlameNode>& nodes = tree.nodes();
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].self > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return nodes[a].self > nodes[b].self; });
  std::vector<std::string> texts(nodes.size());
  auto text_of = [&](uint32_t node) -> const std::string& {
    std::string& text = texts[node];
    if (text.empty()) text = folded_text(tree.label_of(nodes[node]).name);
    return text;
  };
  std::vector<uint32_t> path;
  std::string line;
  for (uint32_t leaf : order) {
    path.clear();
    for (uint32_t node = leaf; node != 0; node = nodes[node].parent) path.push_back(node);
    line.clear();
    if (path.empty()) line = "[no stack]";
    for (size_t i = path.size(); i-- > 0;) {
      line += text_of(path[i]);
      if (i != 0) line += ';';
    }
    output.write(line += fmt::format(" {}\n", nodes[leaf].self));
  }
}

}  // namespace assay::formats
