#include "formats/export/wait_leaf.h"

#include <array>
#include <string>

namespace assay::formats {
namespace {

using Names = std::array<std::string, kWaitLeafCount>;

const Names& names() {
  static const Names all = [] {
    Names made;
    for (int i = 0; i < analysis::kBlockKindCount; ++i) {
      std::string_view kind = analysis::block_kind_name(static_cast<analysis::BlockKind>(i));
      made[static_cast<size_t>(i)] = "[blocked: " + std::string(kind) + "]";
    }
    made[kRunQueueLeaf] = "[run queue]";
    return made;
  }();
  return all;
}

}  // namespace

std::string_view wait_leaf_name(WaitLeaf leaf) {
  return names()[static_cast<size_t>(leaf)];
}

std::optional<WaitLeaf> parse_wait_leaf(std::string_view name) {
  if (!name.starts_with('[')) return std::nullopt;
  for (int i = 0; i < kWaitLeafCount; ++i) {
    if (names()[static_cast<size_t>(i)] == name) return i;
  }
  return std::nullopt;
}

}  // namespace assay::formats
