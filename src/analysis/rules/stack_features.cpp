#include "analysis/rules/stack_features.h"

#include <algorithm>
#include <iterator>

namespace assay::analysis {
namespace {

constexpr size_t kPrefix = 4;

std::string_view without_underscores(std::string_view name) {
  while (name.starts_with('_')) name.remove_prefix(1);
  return name;
}

}  // namespace

SetIndex NameSets::add(const NameSet& names) {
  if (names.empty()) return kNoSet;
  std::vector<std::string> key = names.functions;
  key.push_back("\n");  // no name holds one
  key.insert(key.end(), names.modules.begin(), names.modules.end());
  auto [it, added] = known_.try_emplace(std::move(key), static_cast<SetIndex>(sets_.size()));
  if (!added) return it->second;
  SetIndex index = it->second;
  Set& set = sets_.emplace_back();
  set.any_function = names.functions.empty();
  for (const std::string& module : names.modules) set.modules.emplace_back(module);
  for (const std::string& text : names.functions) {
    NamePattern pattern(text);
    if (pattern.exact()) {
      exact_[text].push_back(index);
    } else if (pattern.literal_prefix().size() >= kPrefix) {
      by_prefix_[std::string(pattern.literal_prefix().substr(0, kPrefix))].push_back(
          {std::move(pattern), index});
    } else {
      others_.push_back({std::move(pattern), index});
    }
  }
  return index;
}

void NameSets::hit(SetIndex index, std::string_view module, std::vector<SetIndex>& out) const {
  const std::vector<NamePattern>& modules = sets_[index].modules;
  bool inside = modules.empty() || std::any_of(modules.begin(), modules.end(),
                                               [&](const auto& m) { return m.matches(module); });
  if (inside) out.push_back(index);
}

std::vector<SetIndex> NameSets::matching(const Function& function) const {
  std::vector<SetIndex> found;
  if (function.kind == CodeKind::marker) return found;
  std::string_view bare = bare_name(function.name), plain = without_underscores(bare);
  // Once as it is called, once without the underscores that libraries put before internal names.
  for (int spelling = 0; spelling < (plain.size() == bare.size() ? 1 : 2); ++spelling) {
    std::string_view name = spelling == 0 ? bare : plain;
    if (!function.named) break;
    if (auto it = exact_.find(std::string(name)); it != exact_.end()) {
      for (SetIndex set : it->second) hit(set, function.module, found);
    }
    if (auto it = by_prefix_.find(std::string(name.substr(0, kPrefix))); it != by_prefix_.end()) {
      for (const Owned& owned : it->second) {
        if (owned.pattern.matches(name)) hit(owned.set, function.module, found);
      }
    }
    for (const Owned& owned : others_) {
      if (owned.pattern.matches(name)) hit(owned.set, function.module, found);
    }
  }
  for (SetIndex set = 0; set < sets_.size(); ++set) {
    if (sets_[set].any_function) hit(set, function.module, found);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

StackFeatures::StackFeatures(const CallTree& tree, const NameSets& sets) : features_(1) {
  index_[{}] = 0;
  of_function_.reserve(tree.functions().size());
  for (const Function& function : tree.functions()) {
    of_function_.push_back(intern(sets.matching(function)));
  }
  of_path_.resize(tree.paths().size());
  std::unordered_map<uint64_t, FeatureIndex> unions;
  for (PathIndex path = 1; path < of_path_.size(); ++path) {
    FeatureIndex above = of_path_[tree.paths()[path].parent];
    FeatureIndex own = of_function_[tree.paths()[path].function];
    if (own == 0 || own == above) {
      of_path_[path] = above;
      continue;
    }
    auto [it, added] = unions.try_emplace(uint64_t{above} << 32 | own);
    if (added) {
      std::vector<SetIndex> both;
      std::set_union(features_[above].begin(), features_[above].end(), features_[own].begin(),
                     features_[own].end(), std::back_inserter(both));
      it->second = intern(std::move(both));
    }
    of_path_[path] = it->second;
  }
}

bool StackFeatures::has(FeatureIndex feature, SetIndex set) const {
  if (set == kNoSet) return false;
  const std::vector<SetIndex>& sets = features_[feature];
  return std::binary_search(sets.begin(), sets.end(), set);
}

FeatureIndex StackFeatures::intern(std::vector<SetIndex> sets) {
  auto [it, added] = index_.try_emplace(sets, static_cast<FeatureIndex>(features_.size()));
  if (added) features_.push_back(std::move(sets));
  return it->second;
}

}  // namespace assay::analysis
