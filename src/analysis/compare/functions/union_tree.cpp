#include "analysis/compare/functions/union_tree.h"

#include "analysis/compare/functions/comparable_name.h"

namespace assay::analysis {

uint32_t UnionTree::function_of(const analysis::Function& function, std::string_view program) {
  constexpr const char* kProgram = "\x01";  // no file is called that
  bool is_program = !program.empty() && function.module == program;
  std::pair key{comparable_name(function.name),
                is_program ? kProgram : comparable_module(function.module)};
  if (auto found = by_name_.find(key); found != by_name_.end()) return found->second;
  auto number = static_cast<uint32_t>(functions_.size());
  auto [bare, first] = by_bare_name_.try_emplace(key.first, number);
  // Nothing but the name can tell, when one of the two has no module.
  bool same = !first && (key.second.empty() || functions_[bare->second].module.empty());
  if (same) return by_name_[key] = bare->second;
  by_name_[key] = number;
  std::string shown = key.second.empty() ? "" : std::string(function.module);
  functions_.push_back({key.first, shown, function.named});
  return number;
}

uint32_t UnionTree::child_of(uint32_t parent, uint32_t function) {
  uint64_t place = uint64_t{parent} << 32 | function;
  auto [it, added] = by_place_.try_emplace(place, static_cast<uint32_t>(nodes_.size()));
  if (added) {
    nodes_.push_back({parent, function, {}});
    nodes_[parent].children.push_back(it->second);
  }
  return it->second;
}

size_t UnionTree::add_run(const CallTree& tree, const std::vector<int64_t>& ns_by_stack,
                          std::string_view program) {
  std::vector<uint32_t> function_numbers;
  function_numbers.reserve(tree.functions().size());
  for (const analysis::Function& function : tree.functions())
    function_numbers.push_back(function_of(function, program));
  // Only paths that time was spent in become nodes; parents have lower indices than children.
  const auto& paths = tree.paths();
  std::vector<char> used(paths.size());
  for (size_t i = 1; i < ns_by_stack.size(); ++i) {
    if (ns_by_stack[i] <= 0) continue;
    for (PathIndex at = tree.path_of({static_cast<uint32_t>(i)}); at != 0 && used[at] == 0;
         at = paths[at].parent)
      used[at] = 1;
  }
  std::vector<uint32_t> node_of(paths.size());
  for (size_t at = 1; at < paths.size(); ++at) {
    if (used[at] == 0) continue;
    // How a stack ended is no function: it would tell apart what is the same.
    uint32_t parent = node_of[paths[at].parent];
    bool marker = tree.functions()[paths[at].function].kind == CodeKind::marker;
    node_of[at] = marker ? parent : child_of(parent, function_numbers[paths[at].function]);
  }
  std::vector<double> self(nodes_.size());
  for (size_t i = 0; i < ns_by_stack.size(); ++i) {
    self[node_of[tree.path_of({static_cast<uint32_t>(i)})]] += static_cast<double>(ns_by_stack[i]);
  }
  std::vector<double> total = self;
  for (size_t node = total.size(); node-- > 1;) total[nodes_[node].parent] += total[node];
  self_.push_back(std::move(self));
  total_.push_back(std::move(total));
  return self_.size() - 1;
}

}  // namespace assay::analysis
