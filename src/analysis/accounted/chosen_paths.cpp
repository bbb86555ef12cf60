#include "analysis/accounted/chosen_paths.h"

#include "base/pattern.h"

namespace assay::analysis {
namespace {

Result<std::vector<bool>> matching(const std::string& expression, const CallTree& tree) {
  std::vector<bool> found(tree.functions().size());
  if (expression.empty()) return found;
  auto pattern = Pattern::compile(expression);
  if (!pattern) return std::unexpected(pattern.error());
  for (size_t i = 0; i < found.size(); ++i) {
    found[i] = pattern->found_in(tree.functions()[i].name);
  }
  return found;
}

Result<std::vector<bool>> numbered(const std::optional<std::vector<uint32_t>>& numbers,
                                   const CallTree& tree) {
  std::vector<bool> found(tree.functions().size());
  if (!numbers) return found;
  for (uint32_t number : *numbers) {
    if (number >= found.size()) {
      return fail("parameter functions: the run has no number {}", number);
    }
    found[number] = true;
  }
  return found;
}

// By path: some function on it is marked. `root` is what holds of the empty path.
std::vector<bool> paths_with(const std::vector<bool>& functions, bool root, const CallTree& tree) {
  std::vector<bool> with(tree.paths().size());
  with[0] = root;
  for (size_t i = 1; i < with.size(); ++i) {  // a parent precedes its children
    const CallTree::Path& path = tree.paths()[i];
    with[i] = with[path.parent] || functions[path.function];
  }
  return with;
}

}  // namespace

Result<std::vector<bool>> choose_paths(const run::Selection& selection, const CallTree& tree) {
  if (!selection.narrows_stacks()) return std::vector<bool>();
  auto focus = matching(selection.focus, tree);
  if (!focus) return std::unexpected(focus.error());
  auto ignore = matching(selection.ignore, tree);
  if (!ignore) return std::unexpected(ignore.error());
  auto numbers = numbered(selection.functions, tree);
  if (!numbers) return std::unexpected(numbers.error());
  std::vector<bool> focused = paths_with(*focus, selection.focus.empty(), tree);
  std::vector<bool> chosen = paths_with(*numbers, !selection.functions, tree);
  std::vector<bool> ignored = paths_with(*ignore, false, tree);
  for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = chosen[i] && focused[i] && !ignored[i];
  return chosen;
}

}  // namespace assay::analysis
