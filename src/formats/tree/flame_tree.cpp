#include "formats/tree/flame_tree.h"

#include <array>

#include "formats/export/wait_leaf.h"
#include "model/code/code_origin.h"

namespace assay::formats {

std::string_view frame_kind_name(FrameKind kind) {
  static constexpr std::array<std::string_view, kFrameKindCount> kNames{
      "process or thread", "application", "user library", "kernel", "JIT", "marker", "waiting"};
  return kNames[static_cast<size_t>(kind)];
}

FrameKind frame_kind(const analysis::Function& function) {
  if (function.kind == analysis::CodeKind::kernel) return FrameKind::kernel;
  if (function.kind == analysis::CodeKind::marker) return FrameKind::marker;
  switch (model::code_origin(function.module)) {
    case model::CodeOrigin::generated:
      return FrameKind::jit;
    case model::CodeOrigin::library:
      return FrameKind::library;
    case model::CodeOrigin::program:
      break;
  }
  return FrameKind::application;
}

FlameTree::FlameTree(std::string root_name, const Shape& shape) : shape_(shape), nodes_(1) {
  label({std::move(root_name), "", "", 0, FrameKind::group});
}

uint32_t FlameTree::label(const FlameLabel& label) {
  std::string key = label.name + '\0' + label.module + '\0' + static_cast<char>(label.kind);
  auto [it, added] = known_labels_.try_emplace(key, static_cast<uint32_t>(labels_.size()));
  if (added) labels_.push_back(label);
  return it->second;
}

uint32_t FlameTree::child(uint32_t parent, uint32_t label) {
  auto [it, added] =
      children_.try_emplace(uint64_t{parent} << 32 | label, static_cast<uint32_t>(nodes_.size()));
  if (added) nodes_.push_back({parent, label});
  return it->second;
}

// Brings one run's rows in; remembers where its paths and functions are in the tree.
class FlameTree::Adder {
 public:
  Adder(FlameTree& tree, const SelectedRun& run)
      : tree_(tree), run_(run), labels_(run.tree().functions().size(), kUnknown) {}

  void add(const TotalRow& row, bool as_base) {
    if (tree_.shape_.metric != Metric::wall) {
      put(row, row.of(tree_.shape_.metric), UINT32_MAX, as_base);
      return;
    }
    put(row, row.cpu_ns, UINT32_MAX, as_base);
    if (row.off_ns > 0) put(row, row.off_ns, wait_label(blocked_leaf(row.kind)), as_base);
    if (row.runqueue_ns > 0) put(row, row.runqueue_ns, wait_label(kRunQueueLeaf), as_base);
  }

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;

  uint32_t wait_label(WaitLeaf leaf) {
    return tree_.label({std::string(wait_leaf_name(leaf)), "", "", 0, FrameKind::wait});
  }

  void put(const TotalRow& row, int64_t value, uint32_t last_label, bool as_base) {
    if (value <= 0) return;
    uint32_t group = group_of(row.thread);
    analysis::PathIndex path = run_.tree().path_of(row.stack);
    uint32_t node = group;
    if (tree_.shape_.inverted) {
      if (last_label != kUnknown) node = tree_.child(node, last_label);
      for (; path != 0; path = run_.tree().paths()[path].parent) {
        node = below(node, run_.tree().paths()[path].function);
      }
    } else {
      node = node_of(group, path);
      if (last_label != kUnknown) node = tree_.child(node, last_label);
    }
    (as_base ? tree_.nodes_[node].base_self : tree_.nodes_[node].self) += value;
  }

  uint32_t node_of(uint32_t group, analysis::PathIndex path) {
    // Up to the first path that is known, then down again: no recursion, stacks can be deep.
    std::vector<analysis::PathIndex> missing;
    uint32_t node = group;
    for (; path != 0; path = run_.tree().paths()[path].parent) {
      auto it = nodes_.find(uint64_t{group} << 32 | path);
      if (it != nodes_.end()) {
        node = it->second;
        break;
      }
      missing.push_back(path);
    }
    for (size_t i = missing.size(); i-- > 0;) {
      node = below(node, run_.tree().paths()[missing[i]].function);
      nodes_[uint64_t{group} << 32 | missing[i]] = node;
    }
    return node;
  }

  uint32_t below(uint32_t node, analysis::FunctionIndex index) {
    bool marker = run_.tree().functions()[index].kind == analysis::CodeKind::marker;
    return marker && tree_.shape_.without_markers ? node : tree_.child(node, label_of(index));
  }

  uint32_t label_of(analysis::FunctionIndex index) {
    if (labels_[index] != kUnknown) return labels_[index];
    const analysis::Function& f = run_.tree().functions()[index];
    return labels_[index] = tree_.label({std::string(f.name), std::string(f.module),
                                         std::string(f.file), f.line, frame_kind(f)});
  }

  uint32_t group_of(model::ThreadId id) {
    if (tree_.shape_.grouping == Grouping::none) return 0;
    auto [it, added] = groups_.try_emplace(id, 0);
    if (!added) return it->second;
    const model::Thread& thread = run_.thread(id);
    uint32_t process = thread.process.value;
    std::string name = process < run_.contents().processes.size()
                           ? run_.process_label(thread.process)
                           : "unknown process";
    uint32_t node = tree_.child(0, tree_.label({name, "", "", 0, FrameKind::group}));
    if (tree_.shape_.grouping == Grouping::pool) {
      const std::string& pool = thread.pool.empty() ? thread.name : thread.pool;
      node = tree_.child(node, tree_.label({pool, "pool", "", 0, FrameKind::group}));
    } else if (tree_.shape_.grouping == Grouping::thread) {
      std::string text = fmt::format("{} {}", thread.name, thread.tid);
      node = tree_.child(node, tree_.label({text, "thread", "", 0, FrameKind::group}));
    }
    return it->second = node;
  }

  FlameTree& tree_;
  const SelectedRun& run_;
  std::vector<uint32_t> labels_;  // by function of the run
  std::unordered_map<uint64_t, uint32_t> nodes_;
  std::unordered_map<model::ThreadId, uint32_t> groups_;
};

void FlameTree::add(const SelectedRun& run, const std::vector<TotalRow>& rows, bool as_base) {
  Adder adder(*this, run);
  for (const TotalRow& row : rows) adder.add(row, as_base);
}

void FlameTree::set_values(uint32_t node, int64_t base_self, int64_t self, bool shown) {
  nodes_[node].base_self = base_self;
  nodes_[node].self = self;
  nodes_[node].shown = shown;
}

void FlameTree::finish() {
  for (FlameNode& node : nodes_) {
    node.total = node.self;
    node.base_total = node.base_self;
  }
  for (size_t i = nodes_.size(); i-- > 1;) {  // children come after their parents
    nodes_[nodes_[i].parent].total += nodes_[i].total;
    nodes_[nodes_[i].parent].base_total += nodes_[i].base_total;
  }
}

}  // namespace assay::formats
