// FlameTree: weighted call paths as a tree of named boxes: what folded stacks and flame graphs
// show.
//
// Made from the totals of one selection; the totals of a second one (a base to compare with) may be
// added, and then every node carries both values. In: SelectedRun and its rows. Out: nodes, parents
// before children; node 0 is the root of everything. Names are copied. Not thread-safe. No
// failures.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/export/metric.h"
#include "formats/export/selected_run.h"
#include "formats/export/totals.h"

namespace assay::formats {

// What a frame is, for its colour.
enum class FrameKind : uint8_t { group, application, library, kernel, jit, marker, wait };
inline constexpr int kFrameKindCount = 7;
std::string_view frame_kind_name(FrameKind kind);
FrameKind frame_kind(const analysis::Function& function);

// What stands below the root, before the first function.
enum class Grouping : uint8_t { none, process, pool, thread };

struct FlameLabel {
  std::string name;
  std::string module;
  std::string file;
  uint32_t line = 0;
  FrameKind kind = FrameKind::application;
};

struct FlameNode {
  uint32_t parent = 0;
  uint32_t label = 0;
  int64_t self = 0;
  int64_t total = 0;  // valid after finish()
  int64_t base_self = 0;
  int64_t base_total = 0;
  bool shown = true;  // of two sides: they differ beyond noise, as far as that was tested
};

class FlameTree {
 public:
  struct Shape {
    Metric metric = Metric::cpu;
    Grouping grouping = Grouping::process;
    bool inverted = false;  // leaf functions at the root, their callers above
    // How a stack ended is no function: between two runs it would tell apart what is the same.
    bool without_markers = false;
  };
  FlameTree(std::string root_name, const Shape& shape);

  void add(const SelectedRun& run, const std::vector<TotalRow>& rows, bool as_base = false);
  // A tree that is no run's: nodes one by one, parents first.
  uint32_t add_node(uint32_t parent, const FlameLabel& label_text) {
    return child(parent, label(label_text));
  }
  void set_values(uint32_t node, int64_t base_self, int64_t self, bool shown);
  void finish();  // sums totals; after the last add()

  const std::vector<FlameNode>& nodes() const { return nodes_; }
  const FlameLabel& label_of(const FlameNode& node) const { return labels_[node.label]; }
  const Shape& shape() const { return shape_; }

 private:
  class Adder;
  uint32_t label(const FlameLabel& label);
  uint32_t child(uint32_t parent, uint32_t label);

  Shape shape_;
  std::vector<FlameNode> nodes_;
  std::deque<FlameLabel> labels_;
  std::unordered_map<std::string, uint32_t> known_labels_;
  std::unordered_map<uint64_t, uint32_t> children_;
};

}  // namespace assay::formats
